import HTTPSemantics
import TestSupport

/// An upload resource of a scripted server that speaks version 8 of the draft. A test calls ``serve(_:_:)`` for the
/// requests that it does not answer itself.
struct ScriptedUpload: Sendable {
    let inventory = UploadInventory()
    var path = "/u/1"
    var limits = "min-size=0"

    static let version = ("Upload-Draft-Interop-Version", "8")

    /// The fields of the interim response that announces the upload resource.
    var announcement: Fields { Fields([Self.version, ("Location", path), ("Upload-Limit", limits)]) }

    func state(complete: Bool = false) -> Fields {
        ["Upload-Offset": "\(inventory.count)", "Upload-Complete": complete ? "?1" : "?0", "Upload-Limit": limits]
    }

    /// Receives the content and adds it to the inventory, up to `maxCount` bytes.
    func receiveContent(_ reply: Reply, atMost maxCount: Int = .max) throws {
        var left = maxCount
        while left > 0 {
            let piece = try reply.readContent(atMost: min(left, 64 << 10))
            if piece.isEmpty { return }
            inventory.append(piece)
            left -= piece.count
        }
    }

    func serve(_ request: ReceivedRequest, _ reply: Reply) throws {
        let isComplete = request.fields["Upload-Complete"] == "?1"
        switch request.method {
        case "POST", "PUT":
            try reply.interim(104, announcement)
            try receiveContent(reply)
            try answer(reply, isComplete, created: true)
        case "PATCH":
            guard request.fields["Upload-Offset"] == "\(inventory.count)" else {
                return try reply.respond(409, state())
            }
            try receiveContent(reply)
            try answer(reply, isComplete, created: false)
        case "HEAD": try reply.respond(204, state())
        case "DELETE": try reply.respond(204)
        case "OPTIONS": try reply.respond(204, ["Upload-Limit": limits])
        default: try reply.respond(405)
        }
    }

    private func answer(_ reply: Reply, _ isComplete: Bool, created: Bool) throws {
        if isComplete { return try reply.respond(200, ["Upload-Complete": "?1", "Location": "/doc/1"], "stored") }
        var fields = state()
        if created { fields.append("Location", path) }
        try reply.respond(created ? 201 : 204, fields)
    }
}

extension ScriptedServer {
    /// A server that announces an upload resource for each POST, receives its content, and then calls `script` with the
    /// number of the upload, from 1 on.
    static func announcing(_ script: @escaping @Sendable (Int, Reply) throws -> Void) throws -> ScriptedServer {
        let count = Counter()
        return try ScriptedServer { request, reply in
            if request.method != "POST" { return try reply.respond(204) }
            let number = count.next()
            try reply.interim(104, Fields([ScriptedUpload.version, ("Location", "/u/\(number)")]))
            try reply.discardContent()
            try script(number, reply)
        }
    }
}

extension Reply {
    /// Sends the final response to a complete upload.
    func respondCreated(_ number: Int) throws {
        try respond(201, ["Upload-Complete": "?1", "Location": "/files/\(number)"])
    }
}
