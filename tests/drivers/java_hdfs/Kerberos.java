import java.io.File;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.minikdc.MiniKdc;

/** A KDC of its own for a cluster. It leaves `krb5.conf`, and the keytabs of the cluster and of a user, the keeper. */
final class Kerberos {
  private Kerberos() {}

  static void secure(Configuration settings, File folder) throws Exception {
    MiniKdc kdc = new MiniKdc(MiniKdc.createConf(), folder);
    kdc.start();
    Files.copy(kdc.getKrb5conf().toPath(), new File(folder, "krb5.conf").toPath());
    File keytab = new File(folder, "cluster.keytab");
    kdc.createPrincipal(keytab, "hdfs/localhost");
    kdc.createPrincipal(new File(folder, "keeper.keytab"), "keeper");
    String principal = "hdfs/localhost@" + kdc.getRealm();
    settings.set("hadoop.security.authentication", "kerberos");
    settings.set("hadoop.security.authorization", "true");
    settings.set("hadoop.proxyuser.hdfs.hosts", "*");
    settings.set("hadoop.proxyuser.hdfs.users", "*");
    settings.set("hadoop.rpc.protection", "privacy");
    settings.set("dfs.data.transfer.protection", "privacy");
    settings.set("dfs.block.access.token.enable", "true");
    // Without it the datanode asks for a port below 1024.
    settings.set("ignore.secure.ports.for.testing", "true");
    for (String node : new String[] {"namenode", "datanode"}) {
      settings.set("dfs." + node + ".keytab.file", keytab.getPath());
      settings.set("dfs." + node + ".kerberos.principal", principal);
    }
  }
}
