import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.paimon.compact.CompactResult;

/**
 * Runs compactions in the calling thread while open, and answers with an empty result afterwards.
 *
 * <p>MergeTreeWriter.prepareCommit triggers a pick of its own after the one compact() asked for, so a plain
 * request may compact a bucket twice. Closed in between, this shows a single pick.
 */
final class SinglePick extends AbstractExecutorService {
    private boolean open = true;

    void close() {
        open = false;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> Future<T> submit(Callable<T> task) {
        return open ? super.submit(task) : CompletableFuture.completedFuture((T) new CompactResult());
    }

    @Override
    public void execute(Runnable command) {
        command.run();
    }

    @Override
    public void shutdown() {}

    @Override
    public List<Runnable> shutdownNow() {
        return List.of();
    }

    @Override
    public boolean isShutdown() {
        return false;
    }

    @Override
    public boolean isTerminated() {
        return false;
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return true;
    }
}
