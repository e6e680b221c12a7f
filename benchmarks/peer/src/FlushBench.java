import java.net.URI;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * FlushBench FS_URI SERVER_PIDS RECORDS BYTES REPLICATION REPS
 *
 * One writer, as that of a log: a small record, hflush, and so on. A line of JSON for each run; the
 * first one, number -1, is to get warm.
 */
public class FlushBench {
  public static void main(String[] a) throws Exception {
    int records = Integer.parseInt(a[2]), bytes = Integer.parseInt(a[3]), reps = Integer.parseInt(a[5]);
    short replication = Short.parseShort(a[4]);
    byte[] record = new byte[bytes];
    try (FileSystem fs = FileSystem.get(new URI(a[0]), new Configuration())) {
      Path path = new Path("/bench-flush");
      for (int rep = -1; rep < reps; rep++) {
        int count = rep < 0 ? records / 4 : records;
        long[] took = new long[count];
        long begin = System.nanoTime();
        try (FSDataOutputStream out = fs.create(path, true, 4096, replication, 128L << 20)) {
          for (int i = 0; i < count; i++) {
            long start = System.nanoTime();
            out.write(record);
            out.hflush();
            took[i] = System.nanoTime() - start;
          }
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        if (fs.getFileStatus(path).getLen() != (long) count * bytes) throw new Exception("short");
        Arrays.sort(took);
        System.out.printf(
            "{\"test\":\"flush\",\"rep\":%d,\"repl\":%d,\"bytes\":%d,\"records_s\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f}%n",
            rep, replication, bytes, count / seconds, took[count / 2] / 1e3, took[count * 99 / 100] / 1e3);
        fs.delete(path, false);
      }
    }
  }
}
