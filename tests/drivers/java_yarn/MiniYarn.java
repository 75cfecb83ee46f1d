import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** A resource manager and a node manager, until the input ends. Each line of it is answered by their addresses. */
public final class MiniYarn {
  // In one JVM, the pages of a node manager replace the resource manager's.
  private static final boolean NO_NODE_WEB = false;
  private static final String ANY_PORT = "127.0.0.1:0";
  private static final String[] ADDRESSES = {
    YarnConfiguration.RM_ADDRESS,
    YarnConfiguration.RM_SCHEDULER_ADDRESS,
    YarnConfiguration.RM_RESOURCE_TRACKER_ADDRESS,
    YarnConfiguration.RM_ADMIN_ADDRESS,
    YarnConfiguration.RM_WEBAPP_ADDRESS,
  };
  private static final String[] OF_CLIENTS = {
    YarnConfiguration.RM_ADDRESS, YarnConfiguration.RM_SCHEDULER_ADDRESS, YarnConfiguration.RM_WEBAPP_ADDRESS,
  };
  private static final String[] FOLDERS = {YarnConfiguration.NM_LOCAL_DIRS, YarnConfiguration.NM_LOG_DIRS};

  /** Settings, as name=value. */
  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    try {
      MiniYARNCluster cluster = new MiniYARNCluster("yarn", 1, 1, 1, NO_NODE_WEB);
      cluster.init(settings(arguments));
      cluster.start();
      if (!cluster.waitForNodeManagersToConnect(60_000)) {
        throw new IllegalStateException("node manager: expected it to be registered within 60 s");
      }
      answerUntilEnd(cluster, answers);
    } catch (Throwable failure) {
      failure.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
    Runtime.getRuntime().halt(0);
  }

  private static YarnConfiguration settings(String[] arguments) {
    YarnConfiguration settings = new YarnConfiguration();
    // "Fixed" ports are those of the settings. Otherwise it binds to the name of the machine, which may be public.
    settings.setBoolean(YarnConfiguration.YARN_MINICLUSTER_FIXED_PORTS, true);
    settings.set(YarnConfiguration.RM_HOSTNAME, "127.0.0.1");
    for (String address : ADDRESSES) {
      settings.set(address, ANY_PORT);
    }
    settings.set("fs.AbstractFileSystem.file.impl", NodeFiles.class.getName());
    for (String argument : arguments) {
      String[] setting = argument.split("=", 2);
      settings.set(setting[0], setting[1]);
    }
    return settings;
  }

  private static void answerUntilEnd(MiniYARNCluster cluster, PrintStream answers) throws Exception {
    Map<String, String> places = new TreeMap<>();
    copy(OF_CLIENTS, cluster.getResourceManager().getConfig(), places);
    copy(FOLDERS, cluster.getNodeManager(0).getConfig(), places);
    String answer = new ObjectMapper().writeValueAsString(Map.of("result", places));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    while (lines.readLine() != null) {
      answers.println(answer);
      answers.flush();
    }
  }

  private static void copy(String[] names, Configuration from, Map<String, String> to) {
    for (String name : names) {
      to.put(name, from.get(name));
    }
  }
}
