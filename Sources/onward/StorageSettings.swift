import CommandLineInterface
import ClusterStorage
import ObjectStorage
import PostgreSQL
import UploadStorage

/// The place of the uploads and files of a command: a data directory, or a PostgreSQL database and an object storage
/// that several servers share.
struct StorageSettings {
    private static let defaultRoot = "./onward-data"

    /// The data directory that was given.
    var givenRoot: String?
    /// The shared database that was given.
    private(set) var catalog: DatabaseURI?
    private var notifications: DatabaseURI?
    private var blobs: ObjectStorageURI?

    /// The data directory.
    var root: String { givenRoot ?? Self.defaultRoot }

    /// The shared database and object storage; `nil` if there is a data directory.
    var cluster: ClusterLocation? {
        guard let catalog, let blobs else { return nil }
        return ClusterLocation(catalog: catalog, notifications: notifications ?? catalog, blobs: blobs)
    }

    /// The name of the storage in messages.
    var description: String { cluster.map { "\($0)" } ?? catalog.map { "\($0)" } ?? root }

    /// Whether any option for a shared storage was given.
    private var isShared: Bool { catalog != nil || blobs != nil || notifications != nil }

    /// - Parameter hasBlobs: whether the command also uses the object storage.
    func check(hasBlobs: Bool = true) throws(OptionError) {
        guard isShared else { return }
        guard catalog != nil, blobs != nil || !hasBlobs else {
            throw OptionError("--catalog and --blobs must be given together")
        }
        if givenRoot != nil {
            throw OptionError(
                "--root and --catalog cannot be combined: with --catalog the server stores nothing on this machine"
            )
        }
    }

    /// The options of a command.
    /// - Parameter path: the property of the command's settings that contains these settings.
    static func options<Settings>(
        _ path: WritableKeyPath<Settings, StorageSettings> & Sendable, group: String, root: String
    ) -> [CommandOption<Settings>] {
        [
            rootOption(path, group: group, root),
            catalogOption(
                path, group: group,
                "PostgreSQL database that several servers share, such as\npostgresql://onward@db.example/onward; needs --blobs"
            ),
            CommandOption(
                "catalog-direct", "URI", group: group,
                "the same database without a pooler, if --catalog connects to a pooler\nsuch as PgBouncer [default: the URI of --catalog]"
            ) { settings, value throws(OptionError) in
                settings[keyPath: path].notifications = try database(value)
            },
            blobsOption(
                path, group: group,
                "storage of the bytes for --catalog: a bucket with the interface of\nAmazon S3, such as s3://bucket/prefix?region=eu-central-1 or\ns3://bucket?endpoint=https://storage.example"
            ),
        ]
    }

    /// The options of a command that can use the storage while servers are running.
    /// - Parameter hasBlobs: whether the command also uses the object storage.
    static func inspectionOptions<Settings>(
        _ path: WritableKeyPath<Settings, StorageSettings> & Sendable, hasBlobs: Bool = true
    ) -> [CommandOption<Settings>] {
        let group = "Options"
        let catalog = "PostgreSQL database of servers with --catalog, instead of a data\ndirectory"
        let both = [
            rootOption(path, group: group, "data directory [default: ./onward-data]"),
            catalogOption(path, group: group, catalog + (hasBlobs ? "; together with --blobs" : "")),
        ]
        guard hasBlobs else { return both }
        return both + [blobsOption(path, group: group, "object storage of these servers")]
    }

    /// The environment of a command that can use the storage while servers are running: the variables of `onward
    /// serve`. An option for a data directory also overrides the variables of a shared storage, and the other way
    /// around.
    static func inspectionVariables(_ arguments: [CommandArgument]) -> [String: String] {
        let given = OptionParser<ServeSettings>.names(in: arguments)
        let overridden =
            given.contains("root")
            ? ["ONWARD_CATALOG", "ONWARD_BLOBS"]
            : given.isDisjoint(with: ["catalog", "blobs"]) ? [] : ["ONWARD_ROOT"]
        return ServeSettings.variables.filter { !overridden.contains($0.key) }
    }

    private static func rootOption<Settings>(
        _ path: WritableKeyPath<Settings, StorageSettings> & Sendable, group: String, _ help: String
    ) -> CommandOption<Settings> {
        CommandOption("root", "DIR", group: group, help) { settings, value throws(OptionError) in
            guard !value.isEmpty else { throw OptionError("the directory's name is empty") }
            settings[keyPath: path].givenRoot = value
        }
    }

    private static func catalogOption<Settings>(
        _ path: WritableKeyPath<Settings, StorageSettings> & Sendable, group: String, _ help: String
    ) -> CommandOption<Settings> {
        CommandOption("catalog", "URI", group: group, help) { settings, value throws(OptionError) in
            settings[keyPath: path].catalog = try database(value)
        }
    }

    private static func blobsOption<Settings>(
        _ path: WritableKeyPath<Settings, StorageSettings> & Sendable, group: String, _ help: String
    ) -> CommandOption<Settings> {
        CommandOption("blobs", "URI", group: group, help) { settings, value throws(OptionError) in
            let blobs: ObjectStorageURI
            do throws(ObjectStorageURI.Mistake) { blobs = try ObjectStorageURI(parsing: value) } catch {
                throw OptionError(error.description)
            }
            if let caFile = blobs.caFile { _ = try ServeSettings.certificates(in: caFile) }
            settings[keyPath: path].blobs = blobs
        }
    }

    private static func database(_ value: String) throws(OptionError) -> DatabaseURI {
        do throws(DatabaseURI.ParsingError) { return try DatabaseURI(parsing: value) } catch {
            throw OptionError(error.description)
        }
    }
}
