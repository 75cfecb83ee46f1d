package org.apache.iceberg;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;

/** Manifest entries, which Iceberg keeps to its own package, with what they inherit filled in. */
public final class EntryReads {
    public record Entry(
            String manifest, int status, Long snapshot, Long sequence, Long fileSequence, ContentFile<?> file) {}

    public static List<Entry> read(ManifestFile manifest, FileIO io, Map<Integer, PartitionSpec> specs)
            throws Exception {
        List<Entry> found = new ArrayList<>();
        if (manifest.content() == ManifestContent.DATA) {
            try (ManifestReader<DataFile> reader = ManifestFiles.read(manifest, io, specs)) {
                collect(manifest.path(), reader, found);
            }
        } else {
            try (ManifestReader<DeleteFile> reader = ManifestFiles.readDeleteManifest(manifest, io, specs)) {
                collect(manifest.path(), reader, found);
            }
        }
        return found;
    }

    private static <F extends ContentFile<F>> void collect(String path, ManifestReader<F> reader, List<Entry> found)
            throws Exception {
        try (CloseableIterable<ManifestEntry<F>> entries = reader.entries()) {
            for (ManifestEntry<F> entry : entries) {
                found.add(
                        new Entry(
                                path,
                                entry.status().id(),
                                entry.snapshotId(),
                                entry.dataSequenceNumber(),
                                entry.fileSequenceNumber(),
                                entry.file().copy()));
            }
        }
    }

    private EntryReads() {}
}
