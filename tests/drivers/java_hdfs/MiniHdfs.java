import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.fs.SafeModeAction;

/** One namenode and one datanode. Each line of the input is a verb; each answer is one line of the output. */
public final class MiniHdfs {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static MiniDFSCluster.DataNodeProperties stopped;

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(new Configuration(), new File(arguments[0])).numDataNodes(1).build();
    cluster.waitActive();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      JsonNode request = JSON.readTree(line);
      int answer = answer(cluster, request.get("verb").asText());
      answers.println("{\"result\": " + answer + "}");
      answers.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private static int answer(MiniDFSCluster cluster, String verb) throws Exception {
    switch (verb) {
      case "port" -> {}
      case "enter safe mode" -> cluster.getFileSystem().setSafeMode(SafeModeAction.ENTER);
      case "leave safe mode" -> cluster.getFileSystem().setSafeMode(SafeModeAction.LEAVE);
      case "stop datanode" -> stopped = cluster.stopDataNode(0);
      case "start datanode" -> {
        cluster.restartDataNode(stopped, true);
        cluster.waitActive();
      }
      default -> throw new IllegalArgumentException(verb);
    }
    return cluster.getNameNodePort();
  }
}
