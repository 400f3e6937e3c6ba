import CommandLineInterface
import SystemCalls
import TransferServer
import UploadStorage

// Messages for a person who starts the server, also if it cannot start.
extension ServeCommand {
    /// The commands to try, shown at the start.
    static func explanation(of server: Server, _ settings: ServeSettings) -> String {
        let token = settings.tokenFile != nil ? " -H 'Authorization: Bearer TOKEN'" : ""
        // The program is named as it was started: it need not be in PATH.
        let program = CommandArgument.all.first?.description ?? "onward"
        let tokenFile = settings.tokenFile != nil ? " --token-file FILE-WITH-TOKEN" : ""
        let scheme = settings.certificateFiles != nil ? "https" : "http"
        var text = "onward serves \(settings.storage.description)"
        for case .tcp(let host, let port) in server.addresses.prefix(1) {
            let name = ["0.0.0.0", "::"].contains(host) ? "localhost" : host.contains(":") ? "[\(host)]" : host
            let base = settings.server.publicBase?.description ?? "\(scheme)://\(name):\(port)"
            let own = base + settings.server.ownPrefix
            text += " at \(own)/"
            if let route = settings.routes.first {
                let forwarded = settings.routes.map { "  \($0.path) to \($0.origin)" }.joined(separator: "\n")
                return text + """
                     and forwards requests below these paths:
                    \(forwarded)

                    Upload a file for an application; the same command resumes after an interruption:
                      \(program) put\(tokenFile) --method POST big.bin \(base)\(route.path)
                    The same with curl, resumable:
                      curl -v\(token) -T big.bin -X POST -H 'Upload-Complete: ?1' -H 'Upload-Draft-Interop-Version: 8' \(base)\(route.path)
                    """
            }
            let url = own + "/files/big.bin"
            text += """


                Upload a file, and download it; the same command resumes after an interruption:
                  \(program) put\(tokenFile) big.bin \(url)
                  \(program) get\(tokenFile) \(url) -o copy.bin
                The same with curl. Upload a file, resumable:
                  curl -v\(token) -T big.bin -H 'Upload-Complete: ?1' -H 'Upload-Draft-Interop-Version: 8' \(url)
                The first response, 104, has the URL of the upload. After an interruption, request the offset:
                  curl -I\(token) \(own)/uploads/…
                and send the remaining bytes from there:
                  tail -c +$((OFFSET + 1)) big.bin | curl\(token) -X PATCH -T - -H "Upload-Offset: $OFFSET" \\
                    -H 'Upload-Complete: ?1' -H 'Content-Type: application/partial-upload' \(own)/uploads/…
                Download it; the same command resumes after an interruption:
                  curl\(token) -C - -o copy.bin \(url)
                """
        }
        return text
    }

    static func report(_ error: StoreError, _ storage: StorageSettings) -> ExitStatus {
        let root = storage.description
        switch error {
        case .inUse where storage.cluster != nil:
            Console.Bounded.error(
                "onward serve: 'onward migrate --back' copies \(root). Start the server when the copy has ended.")
            return .tryAgain
        case .inUse:
            Console.Bounded.error("onward serve: another server uses \(root). Stop it, or choose another --root.")
            return .tryAgain
        case .cannotStartThread(let reason):
            return reportNoThread(for: "the store", reason)
        case .unusableRoot(let reason):
            Console.Bounded.error("onward serve: \(root) cannot be used: \(reason)")
        case .unusableHandover(let reasons):
            Console.Bounded.error("onward serve: \(reasons)")
        case .damaged(let reason) where storage.cluster != nil, .foreignData(let reason) where storage.cluster != nil:
            Console.Bounded.error("onward serve: \(root) cannot be used: \(reason). See docs/scale.md, \"Backup\".")
        case .damaged(let reason), .foreignData(let reason):
            Console.Bounded.error(
                """
                onward serve: \(root) cannot be used: \(reason).
                Restore onward.sqlite from a backup, or move it and uploads/ away to start without unfinished uploads. The
                files in files/ are not affected.
                """)
        case .newerSchema(let version):
            Console.Bounded.error(
                "onward serve: \(root) was written by a newer version of onward (schema \(version)). Nothing was changed."
            )
        default:
            Console.Bounded.error("onward serve: \(root) cannot be used: \(error)")
        }
        return .inputOutput
    }

    static func report(_ error: Server.StartError) -> ExitStatus {
        switch error {
        case .cannotListen(let address, let reason):
            Console.Bounded.error("onward serve: cannot listen on \(address): \(explanation(of: reason, address))")
            return .unavailable
        case .anonymousBeyondLoopback(let address):
            Console.Bounded.error(
                """
                onward serve: \(address) can be reached from other machines, and all clients could read and write there.
                Listen on 127.0.0.1, require credentials with --token-file or --auth-url, serve only applications with --route,
                or allow all clients with --allow-anonymous.
                """)
            return .usage
        case .cannotStartThread(let part, let reason):
            return reportNoThread(for: part, reason)
        case .alreadyStarted:
            return .usage
        case .receiveFilterIneffective:
            Console.Bounded.error("onward serve: \(error.explanation)")
            return .systemRefusal
        }
    }

    private static func reportNoThread(for part: String, _ reason: Errno) -> ExitStatus {
        Console.Bounded.error(
            """
            onward serve: the system cannot start a thread for \(part): \(reason).
            Raise the limit of processes ('ulimit -u', TasksMax= of systemd, pids.max of the container) or of memory.
            """)
        return .systemRefusal
    }

    private static func explanation(of reason: Errno, _ address: SocketAddress) -> String {
        switch (reason, address) {
        case (.addressInUse, .tcp): "\(reason). Choose another address with --listen HOST:PORT or ONWARD_LISTEN."
        case (.addressInUse, .unix): "a file of this name exists, or a server listens there already"
        default: address.explanation(of: reason)
        }
    }
}
