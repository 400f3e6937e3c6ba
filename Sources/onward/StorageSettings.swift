import CommandLineInterface
import ClusterStorage
import ObjectStorage
import PostgreSQL
import UploadStorage

/// Where a command finds uploads and files: in a data directory, or in a PostgreSQL database and an object storage that
/// several servers share.
struct StorageSettings {
    private static let defaultRoot = "./onward-data"

    /// The data directory that was given.
    var givenRoot: String?
    private var catalog: DatabaseURI?
    private var notifications: DatabaseURI?
    private var blobs: ObjectStorageURI?

    /// The data directory.
    var root: String { givenRoot ?? Self.defaultRoot }

    /// The shared database and object storage; nil if there is a data directory.
    var cluster: ClusterLocation? {
        guard let catalog, let blobs else { return nil }
        return ClusterLocation(catalog: catalog, notifications: notifications ?? catalog, blobs: blobs)
    }

    /// The name of the storage in messages.
    var description: String { cluster.map { "\($0)" } ?? root }

    /// Whether any option for a shared storage was given.
    private var isShared: Bool { catalog != nil || blobs != nil || notifications != nil }

    func check() throws(OptionError) {
        guard isShared else { return }
        guard catalog != nil, blobs != nil else { throw OptionError("--catalog and --blobs must be given together") }
        if givenRoot != nil {
            throw OptionError(
                "--root and --catalog exclude each other: with --catalog the server stores nothing on this machine"
            )
        }
    }

    /// The options, for the settings of a command that has these settings.
    static func options<Settings>(
        _ path: WritableKeyPath<Settings, StorageSettings> & Sendable, group: String, root: String
    ) -> [CommandOption<Settings>] {
        [
            .root(root, group: group) { $0[keyPath: path].givenRoot = $1 },
            CommandOption(
                "catalog", "URI", group: group,
                "PostgreSQL database that several servers share, together with --blobs,\nsuch as postgresql://onward@db.example/onward"
            ) { settings, value throws(OptionError) in
                settings[keyPath: path].catalog = try database(value)
            },
            CommandOption(
                "catalog-direct", "URI", group: group,
                "the same database without a pooler, if --catalog connects to a pooler\nsuch as PgBouncer [default: the URI of --catalog]"
            ) { settings, value throws(OptionError) in
                settings[keyPath: path].notifications = try database(value)
            },
            CommandOption(
                "blobs", "URI", group: group,
                "the storage of bytes for --catalog: a bucket with the interface of\nAmazon S3, such as s3://bucket/prefix?region=eu-central-1 or\ns3://bucket?endpoint=https://storage.example"
            ) { settings, value throws(OptionError) in
                do throws(ObjectStorageURI.Mistake) {
                    settings[keyPath: path].blobs = try ObjectStorageURI(parsing: value)
                } catch { throw OptionError(error.description) }
            },
        ]
    }

    private static func database(_ value: String) throws(OptionError) -> DatabaseURI {
        do throws(DatabaseURI.ParsingError) { return try DatabaseURI(parsing: value) } catch {
            throw OptionError(error.description)
        }
    }
}
