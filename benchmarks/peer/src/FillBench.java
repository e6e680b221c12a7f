import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.Path;

/**
 * Empty files, by bare calls: DIR/d0/f0 and so on, so many in each directory.  The NameNode is killed as
 * soon as the last one is answered: before it has the time for what it does when nobody calls.
 *
 *   FillBench URI DIR FILES PER_DIRECTORY THREADS NAMENODE_PID
 *
 * One JSON line in the end.
 */
public class FillBench {
  public static void main(String[] arguments) throws Exception {
    String uri = arguments[0], top = arguments[1];
    int files = Integer.parseInt(arguments[2]), each = Integer.parseInt(arguments[3]);
    TurnsBench.threads = Integer.parseInt(arguments[4]);
    ProcessHandle namenode = ProcessHandle.of(Long.parseLong(arguments[5])).orElseThrow();
    TurnsBench.Server server = new TurnsBench.Server("filled=" + uri + "=self", TurnsBench.threads);
    for (int d = 0; d * each < files; d++) server.clients[0].mkdirs(new Path(top, "d" + d));
    AtomicInteger made = new AtomicInteger();
    double[] figures = TurnsBench.phase(server, files, (client, i) -> {
      TurnsBench.createBare(client, top + "/d" + i / each + "/f" + i % each);
      if (made.incrementAndGet() == files) namenode.destroyForcibly();
    });
    System.out.printf("{\"rep\":0,\"files\":%d,\"files_s\":%.1f}%n", files, figures[0]);
    for (var client : server.clients) client.close();
  }
}
