import org.apache.paimon.data.BinaryRow;

/** An order-free digest of rows: two 64-bit sums of hashes over their BinaryRow bytes, and the count. */
final class RowDigest {
    private long rows;
    private long first;
    private long second;

    void add(BinaryRow row) {
        byte[] bytes = row.toBytes();
        rows++;
        first += hash(bytes, 0x9E3779B97F4A7C15L);
        second += hash(bytes, 0xC2B2AE3D27D4EB4FL);
    }

    void add(RowDigest other) {
        rows += other.rows;
        first += other.first;
        second += other.second;
    }

    long rows() {
        return rows;
    }

    String text() {
        return String.format("%016x%016x", first, second);
    }

    private static long hash(byte[] bytes, long seed) {
        long hash = seed ^ bytes.length;
        for (byte value : bytes) {
            hash = (hash ^ (value & 0xff)) * 0x100000001B3L;
        }
        hash ^= hash >>> 33;
        hash *= 0xFF51AFD7ED558CCDL;
        return hash ^ (hash >>> 33);
    }
}
