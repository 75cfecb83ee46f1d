import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.GenericBlobMetadata;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.ManageSnapshots;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionStatsHandler;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.UpdatePartitionSpec;
import org.apache.iceberg.UpdateProperties;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.expressions.UnboundTerm;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.puffin.Blob;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinWriter;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.rest.RestCatalogServer;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Type;

/** Catalogs, and everything about a table that is not a row. */
final class Tables {
    private static final Map<JsonNode, Catalog> CATALOGS = new HashMap<>();

    /** The request's catalog is {name, kind: jdbc or rest, properties}; one of each is kept open. */
    static Catalog catalog(JsonNode request) {
        JsonNode given = request.required("catalog");
        return CATALOGS.computeIfAbsent(
                given,
                asked -> {
                    Map<String, String> properties = texts(asked.required("properties"));
                    if (asked.required("kind").asText().equals("rest")) {
                        RESTCatalog rest = new RESTCatalog();
                        rest.setConf(new Configuration());
                        rest.initialize(asked.required("name").asText(), properties);
                        return rest;
                    }
                    JdbcCatalog jdbc = new JdbcCatalog();
                    jdbc.setConf(new Configuration());
                    jdbc.initialize(asked.required("name").asText(), properties);
                    return jdbc;
                });
    }

    static Map<String, String> texts(JsonNode json) {
        Map<String, String> found = new LinkedHashMap<>();
        json.fields().forEachRemaining(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }

    static TableIdentifier identifier(JsonNode request) {
        return TableIdentifier.parse(request.required("table").asText());
    }

    static Table load(JsonNode request) {
        return catalog(request).loadTable(identifier(request));
    }

    static TableOperations operations(Table table) {
        return ((BaseTable) table).operations();
    }

    static JsonNode create(JsonNode request) throws Exception {
        TableIdentifier id = identifier(request);
        SupportsNamespaces namespaces = (SupportsNamespaces) catalog(request);
        if (!namespaces.namespaceExists(id.namespace())) {
            namespaces.createNamespace(id.namespace());
        }
        Schema schema = SchemaParser.fromJson(request.required("schema"));
        SortOrder.Builder order = SortOrder.builderFor(schema);
        request.path("sort").forEach(column -> order.asc(column.asText()));
        Catalog.TableBuilder builder =
                catalog(request)
                        .buildTable(id, schema)
                        .withPartitionSpec(spec(schema, request.path("partition")))
                        .withSortOrder(order.build())
                        .withProperties(texts(request.path("properties")));
        if (request.hasNonNull("location")) {
            builder.withLocation(request.get("location").asText());
        }
        return described(builder.create());
    }

    /** Each field is [column, transform] or [column, transform, name]. */
    static PartitionSpec spec(Schema schema, JsonNode fields) {
        PartitionSpec.Builder builder = PartitionSpec.builderFor(schema);
        for (JsonNode field : fields) {
            String column = field.get(0).asText();
            String transform = field.get(1).asText();
            String kind = transform.replaceAll("\\[.*", "");
            String named = kind.equals("identity") ? column : column + "_" + (kind.equals("truncate") ? "trunc" : kind);
            String name = field.size() > 2 ? field.get(2).asText() : named;
            switch (kind) {
                case "identity" -> builder.identity(column, name);
                case "bucket" -> builder.bucket(column, width(transform), name);
                case "truncate" -> builder.truncate(column, width(transform), name);
                case "year" -> builder.year(column, name);
                case "month" -> builder.month(column, name);
                case "day" -> builder.day(column, name);
                case "hour" -> builder.hour(column, name);
                case "void" -> builder.alwaysNull(column, name);
                default -> throw new IllegalArgumentException("transform: found " + transform);
            }
        }
        return builder.build();
    }

    private static int width(String transform) {
        return Integer.parseInt(transform.replaceAll("\\D", ""));
    }

    private static UnboundTerm<Object> term(String column, String transform) {
        return switch (transform.replaceAll("\\[.*", "")) {
            case "identity" -> Expressions.ref(column);
            case "bucket" -> Expressions.bucket(column, width(transform));
            case "truncate" -> Expressions.truncate(column, width(transform));
            case "year" -> Expressions.year(column);
            case "month" -> Expressions.month(column);
            case "day" -> Expressions.day(column);
            case "hour" -> Expressions.hour(column);
            default -> throw new IllegalArgumentException("transform: found " + transform);
        };
    }

    static JsonNode register(JsonNode request) throws Exception {
        TableIdentifier id = identifier(request);
        SupportsNamespaces namespaces = (SupportsNamespaces) catalog(request);
        if (!namespaces.namespaceExists(id.namespace())) {
            namespaces.createNamespace(id.namespace());
        }
        return described(catalog(request).registerTable(id, request.required("metadata").asText()));
    }

    static JsonNode drop(JsonNode request) {
        return IcebergDriver.JSON.getNodeFactory().booleanNode(catalog(request).dropTable(identifier(request), false));
    }

    /** The catalog behind Iceberg's REST protocol, until this process ends. */
    static JsonNode serve(JsonNode request) throws Exception {
        return IcebergDriver.JSON.createObjectNode().put("port", RestCatalogServer.serve(catalog(request)));
    }

    static JsonNode describe(JsonNode request) throws Exception {
        return described(load(request));
    }

    private static ObjectNode described(Table table) throws Exception {
        ObjectNode found = IcebergDriver.JSON.createObjectNode();
        found.put("location", table.location());
        found.put("metadata", operations(table).current().metadataFileLocation());
        found.put("format_version", operations(table).current().formatVersion());
        found.set("schema", IcebergDriver.JSON.readTree(SchemaParser.toJson(table.schema())));
        found.put("spec", table.spec().specId());
        Long snapshot = table.currentSnapshot() == null ? null : table.currentSnapshot().snapshotId();
        found.put("snapshot", snapshot);
        return found;
    }

    /** Changes in order, each kind in a commit of its own. */
    static JsonNode alter(JsonNode request) throws Exception {
        for (JsonNode change : request.required("changes")) {
            Table table = load(request);
            switch (change.required("change").asText()) {
                case "set_properties" -> properties(table, change);
                case "add_partition_field", "remove_partition_field" -> partition(table, change);
                case "sort" -> {
                    var order = table.replaceSortOrder();
                    change.required("columns").forEach(column -> order.asc(column.asText()));
                    order.commit();
                }
                default -> schema(table, change);
            }
        }
        return described(load(request));
    }

    private static void properties(Table table, JsonNode change) {
        UpdateProperties update = table.updateProperties();
        change.required("properties")
                .fields()
                .forEachRemaining(
                        entry -> {
                            if (entry.getValue().isNull()) {
                                update.remove(entry.getKey());
                            } else {
                                update.set(entry.getKey(), entry.getValue().asText());
                            }
                        });
        update.commit();
    }

    private static void partition(Table table, JsonNode change) {
        UpdatePartitionSpec update = table.updateSpec();
        if (change.get("change").asText().equals("remove_partition_field")) {
            update.removeField(change.required("name").asText()).commit();
            return;
        }
        UnboundTerm<Object> term = term(change.required("column").asText(), change.required("transform").asText());
        if (change.hasNonNull("name")) {
            update.addField(change.get("name").asText(), term).commit();
        } else {
            update.addField(term).commit();
        }
    }

    private static void schema(Table table, JsonNode change) throws Exception {
        UpdateSchema update = table.updateSchema().allowIncompatibleChanges();
        String name = change.required("name").asText();
        String parent = change.hasNonNull("parent") ? change.get("parent").asText() : null;
        switch (change.get("change").asText()) {
            case "add_column" -> {
                Type type = type(change.required("type"));
                Object value = Values.toValue(change.path("default"), type);
                Literal<?> literal = value == null ? null : literal(value instanceof byte[] bytes ? ByteBuffer.wrap(bytes) : value);
                if (change.path("required").asBoolean()) {
                    update.addRequiredColumn(parent, name, type, null, literal);
                } else {
                    update.addColumn(parent, name, type, null, literal);
                }
            }
            case "rename_column" -> update.renameColumn(name, change.required("to").asText());
            case "drop_column" -> update.deleteColumn(name);
            case "change_type" -> update.updateColumn(name, type(change.required("type")).asPrimitiveType());
            case "optional" -> update.makeColumnOptional(name);
            case "require" -> update.requireColumn(name);
            case "first" -> update.moveFirst(name);
            case "identifier" -> update.setIdentifierFields(name.isEmpty() ? new String[0] : name.split(","));
            default -> throw new IllegalArgumentException("change: found " + change);
        }
        update.commit();
    }

    private static Literal<?> literal(Object value) {
        if (value instanceof Integer number) {
            return Expressions.lit(number);
        } else if (value instanceof Long number) {
            return Expressions.lit(number);
        } else if (value instanceof Boolean || value instanceof Double || value instanceof Float) {
            return Expressions.lit(value);
        } else if (value instanceof java.math.BigDecimal || value instanceof ByteBuffer) {
            return Expressions.lit(value);
        }
        return Expressions.lit(value.toString());
    }

    static Type type(JsonNode json) {
        ObjectNode field = IcebergDriver.JSON.createObjectNode().put("id", 1).put("name", "x").put("required", false);
        field.set("type", json);
        ObjectNode schema = IcebergDriver.JSON.createObjectNode().put("type", "struct");
        schema.putArray("fields").add(field);
        return SchemaParser.fromJson(schema).columns().get(0).type();
    }

    /** Branches, tags and what is current. */
    static JsonNode refs(JsonNode request) throws Exception {
        Table table = load(request);
        for (JsonNode change : request.required("changes")) {
            ManageSnapshots manage = table.manageSnapshots();
            String name = change.path("name").asText();
            long snapshot = change.path("snapshot").asLong();
            switch (change.required("change").asText()) {
                case "create_branch" -> manage.createBranch(name, snapshot);
                case "create_tag" -> manage.createTag(name, snapshot);
                case "remove_branch" -> manage.removeBranch(name);
                case "remove_tag" -> manage.removeTag(name);
                case "rollback" -> manage.rollbackTo(snapshot);
                case "set_current" -> manage.setCurrentSnapshot(snapshot);
                case "cherry_pick" -> manage.cherrypick(snapshot);
                case "fast_forward" -> manage.fastForwardBranch(name, change.required("to").asText());
                default -> throw new IllegalArgumentException("change: found " + change);
            }
            manage.commit();
            table.refresh();
        }
        return described(table);
    }

    /** Registers a Puffin file of one statistics blob, or the partition statistics that Iceberg computes. */
    static JsonNode statistics(JsonNode request) throws Exception {
        Table table = load(request);
        ObjectNode found = IcebergDriver.JSON.createObjectNode();
        if (request.required("kind").asText().equals("partition")) {
            var file = PartitionStatsHandler.computeAndWriteStatsFile(table);
            table.updatePartitionStatistics().setPartitionStatistics(file).commit();
            return found.put("path", file.path());
        }
        long snapshot = table.currentSnapshot().snapshotId();
        String path = operations(table).metadataFileLocation("stats-" + snapshot + ".stats");
        ByteBuffer sketch = ByteBuffer.wrap("sketch".getBytes(StandardCharsets.UTF_8));
        List<Integer> fields = List.of(table.schema().columns().get(0).fieldId());
        try (PuffinWriter writer = Puffin.write(table.io().newOutputFile(path)).createdBy("tests").build()) {
            long sequence = table.currentSnapshot().sequenceNumber();
            writer.add(new Blob("apache-datasketches-theta-v1", fields, snapshot, sequence, sketch));
            writer.finish();
            List<org.apache.iceberg.BlobMetadata> blobs =
                    writer.writtenBlobsMetadata().stream().map(GenericBlobMetadata::from).collect(Collectors.toList());
            var file = new GenericStatisticsFile(snapshot, path, writer.fileSize(), writer.footerSize(), blobs);
            table.updateStatistics().setStatistics(file).commit();
        }
        return found.put("path", path);
    }

    private Tables() {}
}
