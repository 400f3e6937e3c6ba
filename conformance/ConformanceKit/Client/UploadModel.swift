/// A model of a server that handles uploads correctly. A scenario changes the reactions of the model.
struct UploadModel: Sendable {
    /// The size of the file in bytes.
    let size: Int64
    /// The value of Upload-Limit.
    var limits = "min-size=0"
    var uploads: [ScenarioUpload] = []
    /// Whether the target received a complete representation in a plain request.
    var hasPlainCopy = false
    /// The number of times that the target received a complete representation.
    var completions = 0

    static let target = "/target/file"
    /// The part of upload URIs that clients must keep secret.
    static let secret = "zk3v9q7w5t1x8m2c"

    /// Returns the number of the upload with this path. The prefix `/moved`, which redirections add, is ignored.
    func upload(at target: String) -> Int? {
        let path = String(target.prefix { $0 != "?" }).replacing("/moved", with: "")
        return uploads.first { $0.path == path }?.number
    }

    func isTarget(_ target: String) -> Bool { target.hasPrefix("/target/") || target.hasPrefix("/moved/target/") }

    func kind(of method: String, _ target: String, isDraft: Bool) -> ScriptedRequest.Kind {
        if method == "OPTIONS" && !isDraft { return .discovery }
        if upload(at: target) != nil {
            switch method {
            case "HEAD", "GET": return .retrieval
            case "PATCH": return .append
            case "DELETE": return .cancellation
            default: return .stray
            }
        }
        guard isTarget(target), !["HEAD", "GET", "DELETE"].contains(method) else { return .stray }
        return isDraft ? .creation : .plain
    }

    /// Returns the reaction of a correct server to a request.
    mutating func reaction(to request: ScriptedRequest) -> Reaction {
        var reaction: Reaction
        switch request.kind {
        case .creation: reaction = creation(request)
        case .plain:
            reaction = Reaction(ending: .answer(.init(status: 201)))
            reaction.isCompleting = true
        case .append: reaction = append(request)
        case .retrieval: reaction = retrieval(request)
        case .cancellation:
            let isGone = upload(of: request)?.isGone != false
            if let number = request.upload { uploads[number - 1].isGone = true }
            reaction = Reaction(ending: .answer(.init(status: isGone ? 404 : 204)))
        case .discovery:
            reaction = Reaction(
                ending: .answer(
                    .init(status: 204, fields: [("Upload-Limit", limits), ("Allow", "OPTIONS, POST, PUT")])))
        case .download, .stray: reaction = Reaction(ending: .answer(.init(status: 404)))
        }
        if request.fields["Expect"]?.lowercased() == "100-continue", reaction.readLimit != 0 {
            reaction.interim.insert(.init(status: 100), at: 0)
        }
        return reaction
    }

    func upload(of request: ScriptedRequest) -> ScenarioUpload? { request.upload.map { uploads[$0 - 1] } }

    /// Marks the first upload as complete.
    mutating func completeFirst() {
        if !uploads.isEmpty { uploads[0].isComplete = true }
    }

    private mutating func creation(_ request: ScriptedRequest) -> Reaction {
        let profile = request.profile
        let isComplete = request.isComplete == true
        var upload = ScenarioUpload(
            number: uploads.count + 1, path: "/uploads/\(uploads.count + 1)-\(Self.secret)", profile: profile)
        upload.length = request.length ?? (isComplete ? request.contentLength : nil)
        uploads.append(upload)
        var answer = Reaction.Answer(status: 201, fields: [profile.completeness(isComplete)])
        if !isComplete || profile.rank <= 6 { answer.fields.append(("Location", upload.path)) }
        if !isComplete { answer.fields.append(("Upload-Limit", limits)) }
        var reaction = Reaction(ending: .answer(answer))
        reaction.interim = [
            .init(status: 104, fields: profile.versionFields + [("Location", upload.path), ("Upload-Limit", limits)])
        ]
        reaction.isCompleting = isComplete
        return reaction
    }

    private func append(_ request: ScriptedRequest) -> Reaction {
        let profile = request.profile
        var refusal = Reaction(ending: .reset)
        guard let upload = upload(of: request), !upload.isGone else {
            refusal.refuse(404)
            return refusal
        }
        guard let offset = request.offset else {
            refusal.refuse(400, [profile.completeness(false)])
            return refusal
        }
        if profile.hasMediaType, request.single("Content-Type")?.lowercased() != "application/partial-upload" {
            refusal.refuse(415, [profile.completeness(false), ("Accept-Patch", "application/partial-upload")])
            return refusal
        }
        guard offset == upload.offset else {
            refusal.refuse(409, [profile.completeness(false), ("Upload-Offset", "\(upload.offset)")])
            return refusal
        }
        if profile.rank >= 7, request.isComplete == nil {
            refusal.refuse(400, [profile.completeness(false)])
            return refusal
        }
        let isComplete = request.isComplete ?? (profile.rank == 3)
        if upload.isComplete, !isComplete || (request.contentLength ?? 0) > 0 {
            refusal.refuse(400, [profile.completeness(false)])
            return refusal
        }
        if isComplete, let length = upload.length, let content = request.contentLength, offset + content != length {
            refusal.refuse(400, [profile.completeness(false)])
            return refusal
        }
        let status = isComplete ? 200 : profile.rank <= 6 ? 201 : 204
        var reaction = Reaction(ending: .answer(.init(status: status, fields: [profile.completeness(isComplete)])))
        reaction.isCompleting = isComplete
        return reaction
    }

    private func retrieval(_ request: ScriptedRequest) -> Reaction {
        guard let upload = upload(of: request), !upload.isGone else {
            return Reaction(ending: .answer(.init(status: 404)))
        }
        var fields = [
            ("Upload-Offset", "\(upload.offset)"), request.profile.completeness(upload.isComplete),
            ("Upload-Limit", limits), ("Cache-Control", "no-store"),
        ]
        if let length = upload.length { fields.append(("Upload-Length", "\(length)")) }
        return Reaction(ending: .answer(.init(status: 204, fields: fields)))
    }
}

/// An upload resource of the scripted server.
struct ScenarioUpload: Sendable {
    /// The number of the upload, from 1.
    let number: Int
    /// The path of the upload resource, which cannot be guessed.
    var path: String
    var offset: Int64 = 0
    var isComplete = false
    var length: Int64?
    var isGone = false
    /// Whether all received bytes equal those of the file.
    var isIntact = true
    /// The version in which the upload was created.
    let profile: Profile
}
