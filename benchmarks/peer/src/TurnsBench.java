import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.CryptoProtocolVersion;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.io.EnumSetWritable;

/**
 * The operations of MetaBench on several servers in turns: a short phase of one operation on the first, the same on the
 * next, and so on, from one client.  A disturbance of the machine meets all of them, and all meet the same warm client.
 *
 *   TurnsBench LAYOUT(spread|one) THREADS N REPS NAME=URI=PID[,PID...] ...
 *
 * One JSON line for each repetition, operation and server; repetition -1 is the warm-up, four times as long.
 */
public class TurnsBench {
  interface Op {
    void run(FileSystem fs, int i) throws Exception;
  }

  static final class Server {
    final String name;
    final URI uri;
    final String[] pids;
    final FileSystem[] clients;
    Path[] lists;
    Path[] directories;

    Server(String spec, int threads) throws Exception {
      String[] parts = spec.split("=");
      name = parts[0];
      uri = new URI(parts[1]);
      pids = parts[2].split(",");
      clients = new FileSystem[threads];
      for (int t = 0; t < threads; t++) {
        clients[t] = FileSystem.newInstance(uri, new Configuration(), System.getProperty("user.name"));
      }
    }

    Path directory(int i) {
      return directories[i % directories.length];
    }
  }

  static final Path ROOT = new Path("/bench-turns");
  static final int LISTED = 1000;
  static final int WARM_UP = 4; // times as many as in a repetition: servers in Java are slow at first
  static boolean one;
  static int threads;

  static double cpuSeconds(String... pids) throws IOException {
    double ticks = 0;
    for (String pid : pids) {
      String stat = new String(Files.readAllBytes(Paths.get("/proc/" + pid + "/stat")));
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      ticks += Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }
    return ticks / 100;
  }

  /** Runs an operation n times from all threads; operations a second, CPU seconds of server and client, p50, p99. */
  static double[] phase(Server server, int n, Op op) throws Exception {
    AtomicInteger next = new AtomicInteger();
    AtomicReference<Throwable> error = new AtomicReference<>();
    CountDownLatch go = new CountDownLatch(1);
    long[] latencies = new long[n];
    Thread[] workers = new Thread[threads];
    for (int t = 0; t < threads; t++) {
      FileSystem client = server.clients[t];
      workers[t] = new Thread(() -> {
        try {
          go.await();
          for (int i = next.getAndIncrement(); i < n && error.get() == null; i = next.getAndIncrement()) {
            long began = System.nanoTime();
            op.run(client, i);
            latencies[i] = System.nanoTime() - began;
          }
        } catch (Throwable e) {
          error.compareAndSet(null, e);
        }
      });
      workers[t].start();
    }
    double serverBefore = cpuSeconds(server.pids), clientBefore = cpuSeconds("self");
    long began = System.nanoTime();
    go.countDown();
    for (Thread worker : workers) worker.join();
    double seconds = (System.nanoTime() - began) / 1e9;
    double serverCpu = cpuSeconds(server.pids) - serverBefore, clientCpu = cpuSeconds("self") - clientBefore;
    if (error.get() != null) throw new IOException(server.name, error.get());
    Arrays.sort(latencies);
    return new double[] {n / seconds, serverCpu, clientCpu, latencies[n / 2] / 1e3, latencies[n * 99 / 100] / 1e3};
  }

  static void measure(List<Server> servers, int rep, String name, int n, java.util.function.Function<Server, Op> op)
      throws Exception {
    for (int k = 0; k < servers.size(); k++) { // who is first changes with each repetition
      Server server = servers.get((k + Math.max(rep, 0)) % servers.size());
      double[] v = phase(server, n, op.apply(server));
      System.out.printf("{\"server\":\"%s\",\"layout\":\"%s\",\"threads\":%d,\"rep\":%d,\"op\":\"%s\",\"n\":%d,\"ops_s\":%.1f,"
          + "\"server_cpu_s_per_1000\":%.4f,\"client_cpu_s_per_1000\":%.4f,\"p50_us\":%.0f,\"p99_us\":%.0f}%n",
          server.name, one ? "one" : "spread", threads, rep, name, n, v[0], v[1] * 1000 / n, v[2] * 1000 / n, v[3], v[4]);
      System.out.flush();
    }
  }

  static void check(boolean done, String what) throws IOException {
    if (!done) throw new IOException(what);
  }

  static void createBare(FileSystem fs, String path) throws Exception {
    DFSClient client = ((DistributedFileSystem) fs).getClient();
    ClientProtocol namenode = client.getNamenode();
    HdfsFileStatus status = namenode.create(path, new FsPermission((short) 0644), client.getClientName(),
        new EnumSetWritable<>(EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE)), true, (short) 3, 134217728L,
        CryptoProtocolVersion.supported(), null, null);
    while (!namenode.complete(path, client.getClientName(), null, status.getFileId())) Thread.sleep(1);
  }

  public static void main(String[] arguments) throws Exception {
    one = arguments[0].equals("one");
    threads = Integer.parseInt(arguments[1]);
    int each = Integer.parseInt(arguments[2]), reps = Integer.parseInt(arguments[3]);
    List<Server> servers = new ArrayList<>();
    for (int i = 4; i < arguments.length; i++) servers.add(new Server(arguments[i], threads));
    int listCount = one ? 1 : 16;
    for (Server server : servers) {
      FileSystem fs = server.clients[0];
      fs.delete(ROOT, true);
      server.lists = new Path[listCount];
      for (int d = 0; d < listCount; d++) fs.mkdirs(server.lists[d] = new Path(ROOT, "list" + d));
      phase(server, listCount * LISTED, (f, i) ->
          createBare(f, server.lists[i / LISTED].toUri().getPath() + "/entry-" + i % LISTED));
    }
    for (int rep = -1; rep < reps; rep++) {
      int n = rep < 0 ? WARM_UP * each : each;
      for (Server server : servers) {
        server.directories = new Path[one ? 1 : 64];
        for (int d = 0; d < server.directories.length; d++) {
          server.clients[0].mkdirs(server.directories[d] = new Path(ROOT, "r" + rep + "/d" + d));
        }
      }
      measure(servers, rep, "mkdirs", n, s -> (f, i) -> check(f.mkdirs(new Path(s.directory(i), "m" + i)), "mkdirs"));
      measure(servers, rep, "create", n / 2, s -> (f, i) -> f.create(new Path(s.directory(i), "c" + i)).close());
      measure(servers, rep, "create_rpc", n, s -> (f, i) -> createBare(f, s.directory(i).toUri().getPath() + "/f" + i));
      measure(servers, rep, "stat", n, s -> (f, i) -> f.getFileStatus(new Path(s.directory(i), "f" + i)));
      measure(servers, rep, "list1000", Math.max(64, n / 20), s -> (f, i) ->
          check(f.listStatus(s.lists[i % s.lists.length]).length == LISTED, "listing"));
      measure(servers, rep, "rename", n, s -> (f, i) ->
          check(f.rename(new Path(s.directory(i), "f" + i), new Path(s.directory(i), "g" + i)), "rename"));
      measure(servers, rep, "delete", n, s -> (f, i) -> check(f.delete(new Path(s.directory(i), "g" + i), false), "delete"));
    }
    for (Server server : servers) {
      server.clients[0].delete(ROOT, true);
      for (FileSystem fs : server.clients) fs.close();
    }
  }
}
