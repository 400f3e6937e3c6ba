import ConformanceKit
import FoundationEssentials
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// The directories in which origins get files: their permissions, and what happens if they cannot be used.
@Suite("Gateway: directories of a hand-over by path", .blocking)
struct GatewayPathHandoverDirectoryTests {
    private typealias Fixture = GatewayUploadFixture
    private static let content = GatewayUploadFixture.content

    // MARK: Permissions

    @Test(
        "the group of the origin can read and move its own files, and nothing else; other users can do nothing",
        .enabled(if: PathHandover.canChangeUser, "needs root, to run programs as other users"))
    func permissions() throws {
        let place = try PathHandover()
        let (user, other) = (PathHandover.group, PathHandover.group + 1)
        let foreign = try PathHandover(group: other)
        /// The commands that have succeeded, with the user that ran them.
        let succeeded = Monitor<Set<String>>([])
        let origin = try ScriptedServer.origin { request, connection in
            let file = try request.path.hasPrefix("/app") ? place.file(of: request) : foreign.file(of: request)
            let owner = request.path.hasPrefix("/app") ? user : other
            let directory = file.dropLast("/content".count)
            let commands = [
                "read": "cat \(file) >/dev/null", "list route": "ls \(directory)/..", "list": "ls \(directory)",
                "append": "echo x >>\(file)", "chmod": "chmod 666 \(file)",
                "create in route": "touch \(directory)/../x",
                "rename directory": "mv \(directory) \(directory)x", "link": "ln \(file) \(directory)/y",
            ]
            for (name, command) in commands {
                // Programs of the owner, of a user who only has the same group, and of other users.
                for (uid, gid) in [
                    (owner, owner), (65_534, owner), (owner == user ? other : user, 65_534), (65_534, 65_534),
                ] {
                    if try PathHandover.run(as: uid, group: gid, command) {
                        succeeded.withLock { _ = $0.insert("\(name) \(gid == owner ? "own" : "foreign")") }
                    }
                }
            }
            let destination = owner == user ? place.destination : foreign.destination
            let move = "mv \(file) \(destination)/moved"
            #expect(try !PathHandover.run(as: owner == user ? other : user, move))
            #expect(try PathHandover.run(as: owner, move))
            try connection.respond()
        }
        let options = ["--route", "/other=\(origin.url),access=open,handover=\(foreign.path)"]
        try place.withGateway(to: origin, options: options) { server in
            for target in ["/app/x", "/other/x"] {
                let request = Request.creation(.v8, "POST", target, complete: true, .bytes(Self.content))
                let response = try server.exchange(request)
                #expect(response.status == 200, "\(response)")
            }
            #expect(succeeded.withLock { $0 } == ["read own"])
            for handover in [place, foreign] {
                #expect(PathHandover.content(handover.destination + "/moved") == Self.content)
                handover.expectNothingLeft(server)
            }
            #expect(PathHandover.status(server.root)?.mode == 0o700)
        }
    }

    @Test(
        "an origin that replaces its file by links and adds entries: only the names are removed, and the file counts as moved",
        .enabled(if: PathHandover.canChangeUser, "needs root, to run programs as other users"))
    func hostile() throws {
        let place = try PathHandover()
        let secret = place.beside("secret")
        #expect(FileManager.default.createFile(atPath: secret, contents: Data(Self.content)))
        let kept = place.beside("kept")
        #expect(mkdir(kept, 0o777) == 0)
        #expect(FileManager.default.createFile(atPath: kept + "/file", contents: Data()))
        let origin = try ScriptedServer.origin { request, connection in
            let file = try place.file(of: request)
            let directory = file.dropLast("/content".count)
            // Two links, a file in place of the directory's file, and an empty directory.
            let command = """
                mv \(file) \(place.destination)/moved && ln -s \(secret) \(file) && ln -s \(kept) \(directory)/link \
                && touch \(directory)/more && mkdir \(directory)/empty \
                && touch \(directory)/$(printf 'a\\377') && mkdir \(directory)/$(printf 'b\\377')
                """
            #expect(try PathHandover.run(as: PathHandover.group, command))
            try connection.respond("503 Wait")
        }
        try place.withGateway(to: origin, "retry=60s") { server in
            let location = try Fixture.begin(server)
            Fixture.expectUnknown(try Fixture.complete(server, location))
            #expect(origin.requests.count == 1)
            place.expectNothingLeft(server)
        }
        #expect(PathHandover.content(secret) == Self.content)
        #expect(PathHandover.entries(kept) == ["file"])
    }

    @Test("at the start only directories that a process left behind are removed, and no link is followed")
    func leftovers() throws {
        let place = try PathHandover()
        let outside = place.beside("outside")
        #expect(mkdir(outside, 0o700) == 0)
        #expect(FileManager.default.createFile(atPath: outside + "/content", contents: Data()))
        let names = (0..<4).map { "\($0)" + String(repeating: "a", count: 31) }
        #expect(mkdir("\(place.path)/\(names[0])", 0o730) == 0)
        #expect(FileManager.default.createFile(atPath: "\(place.path)/\(names[0])/content", contents: Data()))
        #expect(symlink("/etc/passwd", "\(place.path)/\(names[0])/link") == 0)
        let name = FilePath("\(place.path)/\(names[0])/a".utf8 + [0xFF])
        _ = try FileDescriptor.open(name, [.writeOnly, .create])
        #expect(symlink(outside, "\(place.path)/\(names[1])") == 0)
        #expect(FileManager.default.createFile(atPath: "\(place.path)/\(names[2])", contents: Data()))
        #expect(mkdir("\(place.path)/notes", 0o700) == 0)
        let origin = try ScriptedServer.origin(Fixture.accept)
        try place.withGateway(to: origin) { _ in
            #expect(Set(place.names) == [names[1], names[2], "notes"])
            #expect(PathHandover.entries(outside) == ["content"])
        }
    }

    // MARK: Mistakes

    @Test("mistakes in all directories are reported together, with what to do, and the server does not start")
    func mistakes() throws {
        let (place, data) = (try PathHandover(), try TemporaryDirectory())
        let (file, listable, changeable, open) = (
            place.beside("file"), place.beside("listable"), place.beside("changeable"), place.beside("open")
        )
        #expect(FileManager.default.createFile(atPath: file, contents: Data()))
        for (path, mode) in [(listable, 0o2750), (changeable, 0o2730), (open, 0o2711)] as [(String, mode_t)] {
            try place.make(path)
            #expect(chmod(path, mode) == 0)
        }
        try FileManager.default.createDirectory(atPath: data.path + "/data", withIntermediateDirectories: true)
        try place.make(data.path + "/data/files")
        try place.make(place.path + "/below")
        let expected = [
            (place.beside("missing"), "it does not exist; create it, with the group of the application: install -d"),
            (file, "it is not a directory"), (listable, "chmod 2710 \(listable)"),
            (changeable, "chmod 2710 \(changeable)"),
            (open, "chmod 2710 \(open)"), (data.path + "/data/files", "it is in the data directory"),
            (place.path + "/below", "each route needs a directory of its own"),
        ]
        let paths = [place.path] + expected.map(\.0) + [place.path]
        let routes = paths.enumerated().flatMap { number, path in
            ["--route", "/\(number)=http://127.0.0.1:9,access=open,handover=\(path)"]
        }
        let process = try ServerProcess.run(["--root", data.path + "/data"] + routes)
        #expect(try process.awaitEnding() == .exited(74))
        let lines = process.errorOutput.split(separator: "\n")
        for (path, text) in expected {
            #expect(
                lines.count { $0.contains("handover=\(path): ") && $0.contains(text) } == 1,
                "\(path): \(process.errorOutput)")
        }
        #expect(lines.count { $0.contains("handover=\(place.path): each route needs") } == 1)
        #expect(lines.count == expected.count + 1, "\(process.errorOutput)")
        #expect(place.names == ["below"])
    }

    @Test(
        "a directory whose files would not get its group is refused, and so is a directory of another user",
        .enabled(if: PathHandover.canChangeUser, "needs root, to run programs as other users"))
    func owners() throws {
        let place = try PathHandover()
        let plain = place.beside("plain")
        try place.make(plain)
        #expect(chmod(plain, 0o710) == 0)
        let data = place.beside("data")
        #expect(mkdir(data, 0o700) == 0 && chown(data, 60_009, 60_009) == 0)
        #expect(chown(plain, 60_009, PathHandover.group) == 0 && chmod(plain, 0o710) == 0)
        let routes = [place.path, plain].flatMap {
            ["--route", "/\($0.split(separator: "/").last ?? "")=http://127.0.0.1:9,access=open,handover=\($0)"]
        }
        let identity = ["--reuid", "60009", "--regid", "60009", "--clear-groups"]
        let process = try ChildProcess(
            "/usr/bin/setpriv", identity + [try ExecutableLocation.onward(), "serve", "--root", data] + routes)
        #expect(try process.awaitEnding() == .exited(74))
        #expect(
            process.errorOutput.contains(
                "handover=\(place.path): its owner is user 0, but the server runs as user 60009"))
        #expect(
            process.errorOutput.contains(
                "handover=\(plain): new files in it would not get its group; run: chmod 2710"))
    }

    @Test(
        "a directory in another mount of the same file system is refused at the start",
        .enabled(if: PathHandover.canChangeUser, "needs root, to mount directories"))
    func otherMount() throws {
        let place = try PathHandover()
        let mounted = place.beside("mounted")
        #expect(mkdir(mounted, 0o700) == 0)
        guard mount(place.path, mounted, nil, UInt(MS_BIND), nil) == 0 else { throw Errno.current }
        defer { umount2(mounted, Int32(MNT_DETACH)) }
        let process = try ServerProcess.run([
            "--root", place.beside("data"), "--route", "/app=http://127.0.0.1:9,access=open,handover=\(mounted)",
        ])
        #expect(try process.awaitEnding() == .exited(74))
        #expect(process.errorOutput.contains("handover=\(mounted): it is not in the same mount as the data directory"))
        #expect(place.names.isEmpty)
    }

    @Test("a directory that disappears while the server runs: the upload waits until it is there again")
    func disappears() throws {
        let place = try PathHandover()
        let origin = try ScriptedServer.origin(place.moveAndAccept)
        try place.withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            #expect(rmdir(place.path) == 0)
            Fixture.expectUnavailable(try Fixture.complete(server, location), retryAfter: "5")
            try server.awaitLog("handover=\(place.path): it does not exist; create it")
            // A directory with other permissions is not used either.
            #expect(mkdir(place.path, 0o755) == 0)
            Fixture.expectUnavailable(try Fixture.complete(server, location), retryAfter: "5")
            #expect(origin.requests.isEmpty && place.names.isEmpty && rmdir(place.path) == 0)
            try place.make(place.path)
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(PathHandover.content(place.destination + "/0") == Self.content)
            place.expectNothingLeft(server)
        }
    }

    @Test(
        "a full disk: the upload waits, and is handed over when there is space",
        .enabled(if: PathHandover.canChangeUser, "needs root, to mount a small tmpfs"))
    func fullDisk() throws {
        let directory = try TemporaryDirectory()
        let disk = try SmallDisk(on: directory.path, "size=16m,nr_inodes=40")
        defer { disk.unmount() }
        let path = directory.path + "/incoming"
        #expect(mkdir(path, 0o700) == 0)
        let origin = try ScriptedServer.origin { request, connection in
            #expect(PathHandover.content(request.fields["Onward-Path"] ?? "") == Self.content)
            try Fixture.accept(request, connection)
        }
        let port = try FixedPort.next()
        let process = try ServerProcess.run([
            "--root", directory.path + "/data", "--listen", "127.0.0.1:\(port)", "--min-free", "0",
            "--route", "/app=\(origin.url),access=open,handover=\(path)",
        ])
        try process.awaitErrorOutput(containing: "listening on ")
        func exchange(_ request: Request) throws -> Response {
            try RawConnection(port: port, authority: "127.0.0.1:\(port)").exchange(request, within: .seconds(60))
        }
        var creation = Request.creation(.v8, "POST", Fixture.target, complete: false, .bytes(Self.content))
        creation.fields += Fixture.fields
        let location = try #require(try exchange(creation).location)
        // No inode is left for another name.
        var fillers: [String] = []
        while FileManager.default.createFile(atPath: directory.path + "/\(fillers.count)", contents: nil) {
            fillers.append(directory.path + "/\(fillers.count)")
        }
        let last = Request.append(.v8, location, at: Self.content.count, complete: true, .bytes([]))
        Fixture.expectUnavailable(try exchange(last), retryAfter: "5")
        try process.awaitErrorOutput(containing: "the file cannot be handed over: the disk is full")
        #expect(origin.requests.isEmpty && PathHandover.entries(path).isEmpty)
        for filler in fillers { unlink(filler) }
        Fixture.expectAnswer(try exchange(last), .v8)
        #expect(origin.requests.count == 1 && PathHandover.entries(path).isEmpty)
        process.kill(SIGKILL)
        _ = try process.awaitEnding()
    }
}
