package org.apache.iceberg.data;

import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.io.CloseableIterable;

/** The rows of one file less what is deleted of them: Iceberg's reader of it is private to its package. */
public final class FileReads {
    public static CloseableIterable<Record> open(TableScan scan, FileScanTask task) {
        return new GenericReader(scan, false).open(task);
    }

    private FileReads() {}
}
