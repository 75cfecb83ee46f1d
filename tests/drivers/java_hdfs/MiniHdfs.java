import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;

/** One namenode and one datanode. Each line of the input is a verb; each answer is one line of the output. */
public final class MiniHdfs {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static MiniDFSCluster.DataNodeProperties stopped;

  /** The folder of the cluster, and that of a KDC if clients have to sign in. */
  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    Configuration settings = new Configuration();
    settings.set("hadoop.security.key.provider.path", "jceks://file" + arguments[0] + ".keys");
    if (arguments.length > 1) {
      Kerberos.secure(settings, new File(arguments[1]));
    }
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings, new File(arguments[0])).numDataNodes(1).build();
    cluster.waitActive();
    if (arguments.length > 1) {
      cluster.getFileSystem().setPermission(new Path("/"), FsPermission.createImmutable((short) 0777));
    }
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      JsonNode request = JSON.readTree(line);
      int answer = answer(cluster, request);
      answers.println("{\"result\": " + answer + "}");
      answers.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private static int answer(MiniDFSCluster cluster, JsonNode request) throws Exception {
    switch (request.get("verb").asText()) {
      case "port" -> {}
      case "enter safe mode" -> cluster.getFileSystem().setSafeMode(SafeModeAction.ENTER);
      case "leave safe mode" -> cluster.getFileSystem().setSafeMode(SafeModeAction.LEAVE);
      case "stop datanode" -> stopped = cluster.stopDataNode(0);
      case "start datanode" -> {
        cluster.restartDataNode(stopped, true);
        cluster.waitActive();
      }
      case "encrypt" -> {
        Path zone = new Path(request.get("path").asText());
        cluster.getFileSystem().mkdirs(zone);
        DFSTestUtil.createKey("key", cluster, new Configuration());
        cluster.getFileSystem().createEncryptionZone(zone, "key");
      }
      case "token" -> {
        String user = request.get("user").asText();
        Path file = new Path("file://" + request.get("file").asText());
        UserGroupInformation.createProxyUser(user, UserGroupInformation.getLoginUser())
            .doAs((PrivilegedExceptionAction<Void>) () -> {
              Credentials signs = new Credentials();
              cluster.getFileSystem().addDelegationTokens(user, signs);
              signs.writeTokenStorageFile(file, new Configuration());
              return null;
            });
      }
      default -> throw new IllegalArgumentException(request.toString());
    }
    return cluster.getNameNodePort();
  }
}
