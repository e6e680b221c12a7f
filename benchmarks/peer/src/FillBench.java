import java.io.IOException;
import java.net.URI;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Empty files, by bare calls: DIR/d0/f0 and so on, so many in each directory.
 *
 *   FillBench URI DIR FILES PER_DIRECTORY THREADS
 *
 * One JSON line in the end.
 */
public class FillBench {
  public static void main(String[] arguments) throws Exception {
    URI uri = new URI(arguments[0]);
    String top = arguments[1];
    int files = Integer.parseInt(arguments[2]), each = Integer.parseInt(arguments[3]);
    FileSystem[] clients = new FileSystem[Integer.parseInt(arguments[4])];
    for (int t = 0; t < clients.length; t++) {
      clients[t] = FileSystem.newInstance(uri, new Configuration(), System.getProperty("user.name"));
    }
    for (int d = 0; d * each < files; d++) clients[0].mkdirs(new Path(top, "d" + d));
    AtomicInteger next = new AtomicInteger();
    AtomicReference<Throwable> error = new AtomicReference<>();
    Thread[] workers = new Thread[clients.length];
    long began = System.nanoTime();
    for (int t = 0; t < clients.length; t++) {
      FileSystem client = clients[t];
      workers[t] = new Thread(() -> {
        try {
          for (int i = next.getAndIncrement(); i < files && error.get() == null; i = next.getAndIncrement()) {
            TurnsBench.createBare(client, top + "/d" + i / each + "/f" + i % each);
          }
        } catch (Throwable e) {
          error.compareAndSet(null, e);
        }
      });
      workers[t].start();
    }
    for (Thread worker : workers) worker.join();
    if (error.get() != null) throw new IOException(error.get());
    double seconds = (System.nanoTime() - began) / 1e9;
    System.out.printf("{\"rep\":0,\"files\":%d,\"files_s\":%.1f}%n", files, files / seconds);
    for (FileSystem client : clients) client.close();
  }
}
