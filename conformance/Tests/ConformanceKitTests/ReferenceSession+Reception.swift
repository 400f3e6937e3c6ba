import HTTPSemantics

@testable import ConformanceKit

extension ReferenceSession {
    /// How the reception of content ended.
    enum Reception {
        case complete
        case interrupted
        case superseded
        case overrun
        case tooLarge
        case malformed
        case otherDigest
        case diskFull
    }

    func receive(_ request: ReferenceRequest, into id: String, epoch: Int) throws -> Reception {
        let wanted = digests(request.fields.values("Content-Digest"))
        let isStaged = !wanted.isEmpty || has(.dropsPrefix)
        var staged: [UInt8] = []
        var ending = Reception.complete
        var reported = 0
        do {
            try input.content(request.framing) { piece in
                if isStaged {
                    staged += piece
                    return true
                }
                ending = add(piece, to: id, epoch: epoch)
                guard case .complete = ending else { return has(.waitsForOverrunsEnd) }
                let offset = server.state.withLock { $0.uploads[id]?.bytes.count ?? 0 }
                if request.draft == 8, offset - reported >= 1 << 20 {
                    reported = offset
                    var fields = versionFields(request) + [offsetField(offset)]
                    if has(.locatesInAppendInterim) { fields.append(("Location", "/uploads/\(id)")) }
                    writeInterim(104, fields, to: request)
                }
                return true
            }
        } catch WireFailure.malformed {
            return .malformed
        } catch {
            let completes =
                request.framing == .chunked ? has(.completesWithoutLastChunk) : has(.completesInterruptedAppend)
            let isCreation = request.method == "POST"
            if isCreation, has(.forgetsResetUploads) {
                server.state.withLock { if $0.uploads[id]?.bytes.isEmpty == true { $0.uploads[id] = nil } }
            }
            guard isCreation ? has(.completesInterrupted) : completes else { return .interrupted }
            server.state.withLock { $0.uploads[id]?.isComplete = true }
            return .interrupted
        }
        guard case .complete = ending else { return ending }
        contentIsRead = true
        if isStaged {
            for (algorithm, value) in wanted where !has(.acceptsWrongContentDigest) {
                if Self.digest(algorithm, staged) != value { return .otherDigest }
            }
            ending = add(staged[...], to: id, epoch: epoch)
        }
        let state = server.state.withLock { $0.uploads[id] }
        if request.isComplete == true, let length = state?.length, let count = state?.bytes.count,
            length != Int64(count), !has(.acceptsShortEnd), !has(.acceptsWrongRemainder),
            !has(.acceptsCreationMismatch)
        {
            return .malformed
        }
        return ending
    }

    private func add(_ piece: ArraySlice<UInt8>, to id: String, epoch: Int) -> Reception {
        let maximum = server.limits.first { $0.0 == "max-size" }?.1 ?? .max
        return server.state.withLock { state in
            guard let upload = state.uploads[id], !upload.isGone else { return .superseded }
            let isRacing = has(.mixesRacers) || has(.appendsLateBytes)
            guard upload.epoch == epoch || isRacing else { return .superseded }
            let end = Int64(upload.bytes.count + piece.count)
            if let length = upload.length, end > length, !has(.acceptsOverrun) {
                if !has(.keepsOverrun) { state.uploads[id]?.isGone = true }
                return .overrun
            }
            if end > maximum { return .tooLarge }
            if end > server.diskSize ?? .max, !has(.acknowledgesBeyondDisk) { return .diskFull }
            state.uploads[id]?.bytes += piece
            return .complete
        }
    }

    func failed(_ ending: Reception, _ id: String, _ request: ReferenceRequest) -> ReferenceReply {
        let offset = server.state.withLock { state in
            state.uploads[id]?.holder = nil
            return state.uploads[id]?.bytes.count
        }
        server.state.notifyAll()
        var reply: ReferenceReply
        switch ending {
        case .diskFull: reply = ReferenceReply(status: 507)
        case .tooLarge: reply = refusal(413, request, fields: limitFields(request))
        case .superseded: reply = refusal(409, request, offset: offset)
        case .otherDigest: reply = refusal(400, request, offset: offset)
        case .complete, .interrupted, .overrun, .malformed:
            reply = refusal(400, request, type: "inconsistent-upload-length", offset: offset)
        }
        reply.closes = true
        return reply
    }
}
