import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local files of a node manager.
 *
 * <p>Hadoop sets the permissions of each file of an archive. Where its native library is missing, as in its jars, it
 * starts `chmod` for each: a minute for an environment of Python.
 */
public final class NodeFiles extends DelegateToFileSystem {
  public NodeFiles(URI ignored, Configuration settings) throws IOException, URISyntaxException {
    super(FsConstants.LOCAL_FS_URI, new Raw(), settings, FsConstants.LOCAL_FS_URI.getScheme(), false);
  }

  @Override
  public int getUriDefaultPort() {
    return -1;
  }

  @Override
  public FsServerDefaults getServerDefaults(Path path) throws IOException {
    return LocalConfigKeys.getServerDefaults();
  }

  @Override
  public boolean isValidName(String source) {
    return true;
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      // Nine letters: it has no sticky bit.
      String letters = new FsPermission((short) (permission.toShort() & 0777)).toString();
      Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(letters));
    }
  }
}
