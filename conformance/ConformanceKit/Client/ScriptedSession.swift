import HTTPSemantics

/// Serves one connection of the scripted server. One thread uses it.
struct ScriptedSession {
    private let connection: ScriptedConnection
    private let shared: ScenarioState
    private let origin: Int

    init(_ connection: ScriptedConnection, shared: ScenarioState, origin: Int) {
        self.connection = connection
        self.shared = shared
        self.origin = origin
    }

    func run() {
        defer { connection.close() }
        do throws(WireFailure) {
            while let head = try connection.readHead() {
                guard case .success(let framing) = MessageFraming.evaluate(head) else {
                    throw .malformed("invalid framing of \(head.method) \(head.target)")
                }
                guard try serve(head, framing) else { return }
            }
        } catch {
            switch error {
            case .malformed(let text), .flood(let text): shared.note(malformed: text)
            default: return
            }
            connection.send(Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8))
        }
    }

    /// - Returns: whether the connection can stay open.
    private func serve(_ head: RequestHead, _ framing: MessageFraming) throws(WireFailure) -> Bool {
        if let fields = CrossOriginAnswer.preflightFields(head), framing == .none || framing == .length(0) {
            // Browsers send preflights by themselves, so they are not requests of the client.
            return connection.send(Self.head(204, fields))
        }
        let (number, reaction) = shared.receive(head, on: connection.number, origin: origin)
        var interim = reaction.interim.sorted { $0.at < $1.at }[...]
        func announce(upTo count: Int64) {
            while let next = interim.first, next.at <= count {
                interim.removeFirst()
                connection.send(Self.head(next.status, next.fields))
            }
        }
        announce(upTo: 0)
        let isRead: Bool
        do throws(WireFailure) {
            isRead = try connection.readContent(framing, atMost: reaction.readLimit) {
                bytes throws(WireFailure) in
                announce(upTo: shared.receiveContent(bytes, of: number, shouldStore: reaction.shouldStore))
            }
        } catch {
            shared.conclude(number, status: nil, isInterruption: false)
            throw error
        }
        if isRead {
            announce(upTo: .max)
            shared.finish(number, reaction)
        }
        switch reaction.ending {
        case .reset:
            shared.conclude(number, status: nil, isInterruption: true)
            connection.reset()
            return false
        case .end:
            shared.conclude(number, status: nil, isInterruption: true)
            connection.endOutput()
            let discarded = connection.discard(for: .seconds(5))
            shared.conclude(number, status: nil, discarded: discarded, isInterruption: false)
            return false
        case .kill:
            shared.conclude(number, status: nil, isInterruption: true)
            // The client needs time to store its state.
            Deadline.pause(.seconds(1))
            shared.requestKill()
            awaitEndOfClient()
            connection.reset()
            return false
        case .stall:
            shared.conclude(number, status: nil, isInterruption: true)
            shared.note("the server sends nothing more", on: connection.number)
            while !shared.isOver { Deadline.pause(.milliseconds(20)) }
            return false
        case .answer(let answer):
            let continues = reply(answer, to: head, number, isRead: isRead)
            guard isRead, case .length = framing, let surplus = connection.surplus() else { return continues }
            shared.note(surplus: "\(surplus), after \(head.method) with Content-Length")
            return false
        }
    }

    private func reply(_ answer: Reaction.Answer, to head: RequestHead, _ number: Int, isRead: Bool) -> Bool {
        let request = shared.record.requests[number - 1]
        var fields = answer.fields
        let isForUpload = [.creation, .append].contains(request.kind)
        if isForUpload, request.profile.shouldRepeatOffset, !fields.contains(where: { $0.0 == "Upload-Offset" }),
            let offset = shared.offset(of: number)
        {
            fields.append(("Upload-Offset", "\(offset)"))
        }
        let hasContent = answer.status != 204 && head.method != .head
        if answer.isChunked {
            fields.append(("Transfer-Encoding", "chunked"))
        } else if answer.status != 204, !fields.contains(where: { $0.0 == "Content-Length" }) {
            fields.append(("Content-Length", "\(answer.content.count)"))
        }
        if !isRead { fields.append(("Connection", "close")) }
        let content = hasContent ? Array(answer.content.prefix(answer.cutAt ?? .max)) : []
        let isCut = hasContent && answer.cutAt != nil
        let isInterruption = isCut || answer.status >= 500 || (!isRead && answer.status >= 400)
        // The response is recorded before it is sent, so that the reaction to the next request finds it in the record.
        let reported = AnswerFields(fields: Fields(answer.fields))
        shared.conclude(
            number, status: answer.status, reported: reported, sent: Int64(content.count),
            isInterruption: isInterruption)
        var bytes = Self.head(answer.status, fields + CrossOriginAnswer.fields(head))
        if answer.isChunked {
            if !content.isEmpty { bytes += ConformanceKit.Request.chunk(content) }
            if !isCut { bytes += ConformanceKit.Request.lastChunk }
        } else {
            bytes += content
        }
        if answer.shouldKill {
            trickle(bytes)
            shared.requestKill()
            awaitEndOfClient()
            return false
        }
        let isSent = connection.send(bytes)
        guard isSent, !isCut else {
            // The connection is not reset: after a reset, the client might not receive the bytes that were sent.
            connection.endOutput()
            _ = connection.discard(for: .milliseconds(500))
            return false
        }
        if isRead { return head.fields["Connection"]?.lowercased() != "close" }
        // Content that the client sends after the response counts as wasted.
        connection.endOutput()
        Deadline.pause(.milliseconds(200))
        let discarded = connection.discard(for: .seconds(5))
        shared.conclude(number, status: nil, discarded: discarded, isInterruption: false)
        return false
    }

    /// Keeps the connection until the killed client has closed it. A client that does not run in the process of the command,
    /// such as a page in a browser, ends some time after that process; without the connection it would send another
    /// request, which would count as one of the next run.
    private func awaitEndOfClient() {
        while !shared.isOver, !shared.isKilled { Deadline.pause(.milliseconds(5)) }
        _ = connection.discard(for: .seconds(15))
        shared.killedClientEnded()
    }

    /// Sends most bytes at once and the others in small pieces: some clients store their progress only when bytes arrive.
    private func trickle(_ bytes: [UInt8]) {
        let piece = 2048
        let pieces = min(30, bytes.count / piece)
        connection.send(bytes.dropLast(pieces * piece))
        for index in (0..<pieces).reversed() {
            Deadline.pause(.milliseconds(100))
            connection.send(bytes.dropLast(index * piece).suffix(piece))
        }
    }

    private static func head(_ status: Int, _ fields: [(String, String)]) -> [UInt8] {
        var text = "HTTP/1.1 \(status) Scripted\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        return Array((text + "\r\n").utf8)
    }
}

/// The fields of a scripted response, as a correct client reads them.
struct AnswerFields: FieldSection {
    let fields: Fields

    var offset: Int64? { integer("Upload-Offset") }

    func isComplete(_ profile: Profile) -> Bool? {
        boolean(profile.completenessName).map { $0 != profile.isInverse }
    }
}

/// The CORS fields (Fetch standard) with which pages of every origin can use a scripted server, for clients in browsers.
enum CrossOriginAnswer {
    /// The fields of the response to a preflight, which allow everything that the page requests; `nil` if the request is
    /// not a preflight.
    static func preflightFields(_ head: RequestHead) -> [(String, String)]? {
        guard head.method == .options, head.fields.contains("Origin"),
            let method = head.fields["Access-Control-Request-Method"]
        else { return nil }
        let names = head.fields["Access-Control-Request-Headers"]
        return fields(head) + [("Access-Control-Allow-Methods", method), ("Access-Control-Max-Age", "600")]
            + (names.map { [("Access-Control-Allow-Headers", $0)] } ?? [])
    }

    /// The fields of every other response.
    static func fields(_ head: RequestHead) -> [(String, String)] {
        guard head.fields.contains("Origin") else { return [] }
        return [("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "*")]
    }
}
