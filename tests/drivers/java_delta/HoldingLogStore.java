import io.delta.storage.HDFSLogStore;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Delta's default log store, which waits before it writes a commit while there is a file "hold" in the folder that
 * the property nightkeep.hold names. It says that it waits by a file "held".
 */
public final class HoldingLogStore extends HDFSLogStore {
    private static final long POLL_MILLIS = 10;
    private static final long LIMIT_MILLIS = 120_000;

    public HoldingLogStore(Configuration configuration) {
        super(configuration);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
            throws IOException {
        if (path.getName().matches("\\d{20}\\.json")) {
            hold();
        }
        super.write(path, actions, overwrite, configuration);
    }

    private static void hold() throws IOException {
        java.nio.file.Path folder = java.nio.file.Path.of(System.getProperty("nightkeep.hold"));
        java.nio.file.Path hold = folder.resolve("hold");
        long end = System.currentTimeMillis() + LIMIT_MILLIS;
        while (Files.exists(hold)) {
            if (System.currentTimeMillis() > end) {
                throw new IOException(hold + ": a commit was held for " + LIMIT_MILLIS + " ms");
            }
            try {
                Files.createFile(folder.resolve("held"));
            } catch (FileAlreadyExistsException waiting) {
                // Said already.
            }
            try {
                Thread.sleep(POLL_MILLIS);
            } catch (InterruptedException stopped) {
                throw new IOException(stopped);
            }
        }
    }
}
