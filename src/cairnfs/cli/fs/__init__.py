"""`cairn fs`: the verbs of Hadoop's `hdfs dfs`, without a JVM."""
