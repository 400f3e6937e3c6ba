import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The data directory of `onward serve`: its creation, and errors if it cannot be used.
@Suite("Data directory", .blocking)
struct DataDirectoryTests {
    private func permissions(_ path: String) -> mode_t? {
        var information = stat()
        return stat(path, &information) == 0 ? information.st_mode & 0o777 : nil
    }

    private func run(_ root: String) throws -> OnwardRun {
        try OnwardRun(["serve", "--listen", "127.0.0.1:0", "--root", root])
    }

    @Test(
        "serve creates a missing root (0700) with its parents and a database (0600), and stores files under their names"
    )
    func made() throws {
        let directory = try TemporaryDirectory()
        let root = directory.path + "/a/b c/data"
        let process = try ServerProcess.run(["--root", root, "--listen", "127.0.0.1:0"])
        try process.awaitErrorOutput(containing: "listening on")
        #expect(permissions(root) == 0o700)
        #expect(permissions(root + "/onward.sqlite") == 0o600)
        for name in ["files", "uploads"] { #expect(permissions(root + "/" + name) != nil, "\(name)") }
        process.kill(SIGTERM)
        #expect(try process.awaitEnding() == .exited(0))

        try withServer { server in
            try server.publish(Payload.bytes(100), as: "dir/my file.txt".addingEscapes)
            #expect(server.published("dir/my file.txt") == Payload.bytes(100))
            let mode = try #require(permissions(server.path(of: "dir/my file.txt")))
            #expect(mode & 0o400 != 0 && mode & 0o133 == 0, "the owner can read the file, and no user can execute it")
        }
    }

    @Test("If the root is a file, is below a file or has an invalid name, serve ends with 74 and a message")
    func noDirectory() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/file"
        try Data("mine".utf8).write(to: URL(filePath: file))
        try run(file).expect(74, file)
        try run(file + "/data").expect(74, file)
        #expect(symlinkFile(directory.path + "/nowhere/at all", directory.path + "/dangling"))
        try run(directory.path + "/dangling").expect(74, "dangling")
        try run(directory.path + "/" + String(repeating: "x", count: 300)).expect(74)
        try run("/proc/onward-data").expect(74, "/proc/onward-data")
        let missing = directory.path + "/missing"
        let check = try OnwardRun(["check", "--root", missing])
        #expect(check.ending == .exited(74))
        #expect(check.output == "onward check: \(missing) cannot be used: No such file or directory (ENOENT)\n")
        #expect(FileManager.default.contents(atPath: file) == Data("mine".utf8))
    }

    @Test("If files, uploads or onward.sqlite has the wrong type, serve ends with 74 and does not change it")
    func foreignParts() throws {
        for (name, content) in [
            ("files", "a file"), ("uploads", "a file"), ("onward.sqlite", "this is no database at all"),
        ] {
            let directory = try TemporaryDirectory()
            let root = directory.path + "/data"
            try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
            try Data(content.utf8).write(to: URL(filePath: root + "/" + name))
            let refusal = try run(root)
            refusal.expect(74, root)
            #expect(refusal.output.split(separator: root).count == 2, "\(refusal.output)")
            let isAdvised = refusal.output.contains("Restore onward.sqlite from a backup")
            #expect(isAdvised == (name == "onward.sqlite"), "\(refusal.output)")
            #expect(FileManager.default.contents(atPath: root + "/" + name) == Data(content.utf8), "\(name)")
        }
        // A symbolic link would lead out of the directory.
        let directory = try TemporaryDirectory()
        let root = directory.path + "/data"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        #expect(symlinkFile("/tmp", root + "/files"))
        try run(root).expect(74, root)
    }

    @Test(
        "If serve has no permission to write to its root, it ends with 74",
        .enabled(if: geteuid() != 0 || Dropped.isPossible, "needs a user other than root, or setpriv"))
    func permissionless() throws {
        let directory = try TemporaryDirectory()
        let root = directory.path + "/data"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        #expect(chmod(directory.path, 0o711) == 0)
        #expect(chmod(root, 0o555) == 0)
        try Dropped.run(["serve", "--listen", "127.0.0.1:0", "--root", root]).expect(74, root)
        try Dropped.run(["serve", "--listen", "127.0.0.1:0", "--root", directory.path + "/new"]).expect(74, "/new")
        #expect(chmod(root, 0o700) == 0)
    }

    @Test(
        "If the root is on a read-only file system, serve ends with 74",
        .enabled(if: ReadOnlyMount.isPossible, "needs root and a mount namespace"))
    func readOnly() throws {
        let directory = try TemporaryDirectory()
        let root = directory.path + "/data"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        try ReadOnlyMount.run(root, ["serve", "--listen", "127.0.0.1:0", "--root", root]).expect(74, root)
        try ReadOnlyMount.run(root, ["serve", "--listen", "127.0.0.1:0", "--root", root + "/new"]).expect(74, root)
    }

    @Test("A second server on the same directory ends with 75, and the first one is not affected")
    func inUse() throws {
        try withServer { server in
            try server.publish([1, 2, 3], as: "f.bin")
            try run(server.root).expect(75, server.root)
            try run(server.directory.path + "/./data/").expect(75)
            #expect(symlinkFile(server.root, server.directory.path + "/link"))
            try run(server.directory.path + "/link").expect(75)
            #expect(try server.download("f.bin").content == [1, 2, 3])
            try server.publish([4], as: "g.bin")
            // The lock ends with the process, in whatever way the process ends.
            try server.restart()
            #expect(try server.download("g.bin").content == [4])
        }
    }
}

/// A run of `onward` as a user other than root.
enum Dropped {
    static var isPossible: Bool { access("/usr/bin/setpriv", X_OK) == 0 }

    static func run(_ arguments: [String]) throws -> OnwardRun {
        guard geteuid() == 0 else { return try OnwardRun(arguments) }
        return try OnwardRun(
            shell: "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" \"$@\" 1>&2", arguments)
    }
}

/// A run of `onward` with one directory mounted read-only.
enum ReadOnlyMount {
    static let isPossible: Bool = {
        guard geteuid() == 0, let probe = try? ChildProcess("/usr/bin/unshare", ["-m", "/bin/true"]) else {
            return false
        }
        return (try? probe.awaitEnding()) == .exited(0)
    }()

    static func run(_ directory: String, _ arguments: [String]) throws -> OnwardRun {
        try OnwardRun(
            shell: "exec unshare -m /bin/sh -c 'mount --bind \"$DIRECTORY\" \"$DIRECTORY\" && "
                + "mount -o remount,ro,bind \"$DIRECTORY\" && exec \"$0\" \"$@\"' \"$0\" \"$@\" 1>&2",
            arguments, environment: ["DIRECTORY": directory])
    }
}
