import Dispatch
import Glibc
import Synchronization
import TransferServer

/// Starts a server.
/// - Returns: 71 if the server refuses to start because its receive filter is not effective; the error was printed.
@_cdecl("start_plugin")
public func startPlugin() -> CInt {
    let root = (getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") + "/onward-plugin-\(getpid())"
    guard let store = try? UploadStore.open(root: root, configuration: StoreConfiguration(minFree: 0)) else {
        return 74
    }
    defer { store.close() }
    let server = Server(
        configuration: ServerConfiguration(listeners: [.unix(path: root + "/socket")], logLevel: .error), store: store,
        handlers: [])
    // The host calls this function on its main thread, which is not one of the cooperative pool.
    let result = Mutex<CInt>(1)
    let isDone = DispatchSemaphore(value: 0)
    Task {
        let status = await start(server)
        result.withLock { $0 = status }
        isDone.signal()
    }
    isDone.wait()
    return result.withLock { $0 }
}

private func start(_ server: Server) async -> CInt {
    do throws(Server.StartError) {
        try await server.start()
    } catch {
        print(error.explanation)
        if case .receiveFilterIneffective = error { return 71 }
        return 1
    }
    await server.stop()
    print("the server started without its receive filter")
    return 0
}
