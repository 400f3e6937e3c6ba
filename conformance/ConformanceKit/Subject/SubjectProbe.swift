/// Determines the versions, limits and features of a subject before the first case.
struct SubjectProbe {
    let subject: Subject
    let observations: Observations

    /// - Throws: ``RunFailure`` if the subject cannot be reached, ``SetupFailure`` if it accepts no upload in any
    ///   version.
    func run() throws {
        let context = CaseContext(subject: subject, profile: .interop(8), observations: observations)
        try readLimits(context)
        let chosen = subject.settings.profiles
        let candidates = chosen.isEmpty ? Profile.versions.reversed().map(Profile.interop) : chosen
        let announced = try candidates.filter { try isAnnounced(in: $0) }
        subject.isAnnouncing = !announced.isEmpty
        subject.supportedProfiles = chosen.isEmpty ? announced : chosen
        if subject.supportedProfiles.isEmpty {
            // A server that never sends 104 can still accept uploads.
            var answer = "got no response"
            guard let accepted = try candidates.first(where: { try isAccepted(in: $0, &answer) }) else {
                throw SetupFailure(
                    finding: Finding(
                        expected: "a 104, or 2xx with Location, to a creation in any version of the draft",
                        seen: "\(subject.method) \(subject.endpoint.url) \(answer)"))
            }
            subject.supportedProfiles = [accepted]
        }
        subject.defaultProfile = subject.supportedProfiles.max { $0.rank < $1.rank } ?? .interop(8)
        try findDownloadSource()
    }

    private func readLimits(_ context: CaseContext) throws {
        let request = Request(
            "OPTIONS", subject.newTarget(), Profile.interop(8).versionFields + subject.extraFields)
        let response = try context.setup {
            do {
                return try context.exchange(request)
            } catch WireFailure.cannotConnect(let address, let error) {
                throw RunFailure("the server at \(address) cannot be reached: \(address.explanation(of: error))")
            }
        }
        subject.limits = response.limits ?? [:]
    }

    /// Returns whether the subject announces a creation in this version with 104.
    private func isAnnounced(in profile: Profile) throws -> Bool {
        let context = CaseContext(subject: subject, profile: profile, observations: observations)
        defer { context.cancelUploads() }
        let connection = try context.connect()
        let request = context.creation(complete: true, .declared(Int64(subject.smallestContentSize)))
        try connection.send(request)
        do {
            while let interim = try connection.readInterim(within: min(.seconds(5), subject.timeout)) {
                guard interim.status == 104 else { continue }
                if let upload = try? context.upload(at: interim.location, of: request, interim.summary) {
                    connection.reset()
                    context.uploads = [upload]
                }
                return true
            }
        } catch {
            // The subject may wait for the content, which is never sent, until it closes the connection. It then counts
            // as one that sends no 104.
        }
        return false
    }

    /// Returns whether the subject accepts an empty creation in this version.
    /// - Parameter answer: set to a description of the response.
    private func isAccepted(in profile: Profile, _ answer: inout String) throws -> Bool {
        let context = CaseContext(subject: subject, profile: profile, observations: observations)
        defer { context.cancelUploads() }
        let request = context.creation(complete: false, .bytes([]))
        do {
            let response = try context.exchange(request)
            answer = "got \(response.status) and no 104"
            if response.status == 405, let methods = response.fields["Allow"] {
                let canPut = subject.method != "PUT" && response.list("Allow").contains("put")
                let advice = canPut ? "use --method PUT, with {name} in the URL" : "see --method"
                answer += ". The server allows \(methods): \(advice)."
            }
            return try response.isSuccessful && context.upload(from: response, to: request).endpoint.target != ""
        } catch {
            return false
        }
    }

    /// Uploads a file, and determines which URL serves it: the value of a response field, or the request target.
    private func findDownloadSource() throws {
        let context = CaseContext(subject: subject, profile: subject.defaultProfile, observations: observations)
        let content = context.bytes(subject.smallestContentSize)
        let request = context.creation(complete: true, .bytes(content))
        guard let response = try? context.exchange(request), response.isSuccessful else { return }
        subject.downloadSource = DownloadSource.allCases.first { source in
            guard let fileURL = source.fileURL(in: response, to: request, at: subject.endpoint) else { return false }
            let file = try? context.download(fileURL)
            return file?.status == 200 && file?.content == content
        }
    }
}
