/// Determines the versions, limits and features of a subject before the first case.
struct SubjectProbe {
    let subject: Subject
    let observations: Observations

    /// - Throws: ``RunFailure`` if the subject cannot be reached, ``SetupFailure`` if it accepts no upload in any
    ///   version.
    func run() throws {
        let context = CaseContext(subject: subject, profile: .interop(8), observations: observations)
        try readLimits(context)
        let candidates =
            subject.settings.profiles.isEmpty
            ? Profile.versions.reversed().map(Profile.interop) : subject.settings.profiles
        subject.supportedProfiles = try candidates.filter { try isAnnounced(in: $0) }
        subject.announces = !subject.supportedProfiles.isEmpty
        if !subject.settings.profiles.isEmpty { subject.supportedProfiles = subject.settings.profiles }
        if subject.supportedProfiles.isEmpty {
            // A server that never sends 104 may accept uploads.
            var answer = "no answer"
            guard let accepted = try candidates.first(where: { try isAccepted(in: $0, &answer) }) else {
                throw SetupFailure(
                    finding: Finding(
                        expected: "a 104, or 2xx with Location, to a creation in any version of the draft",
                        seen: "\(answer), to \(subject.method) \(subject.endpoint.url)"))
            }
            subject.supportedProfiles = [accepted]
        }
        subject.base = subject.supportedProfiles.max { $0.rank < $1.rank } ?? .interop(8)
        try findDownloads()
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
        let request = context.creation(complete: true, .declared(Int64(subject.part)))
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
            // If no response arrives before the content, the subject sends no 104.
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
            answer = "\(response.status) without a 104 before it"
            if response.status == 405, let methods = response.fields["Allow"] {
                answer += " (it allows \(methods): see --method, and {name} in the URL)"
            }
            return try response.isSuccessful && context.upload(from: response, to: request).endpoint.target != ""
        } catch {
            return false
        }
    }

    private func findDownloads() throws {
        let context = CaseContext(subject: subject, profile: subject.base, observations: observations)
        let content = context.bytes(subject.part)
        let request = context.creation(complete: true, .bytes(content))
        guard let response = try? context.exchange(request), response.isSuccessful else { return }
        subject.download = DownloadSource.allCases.first { source in
            guard let place = source.place(in: response, to: request, at: subject.endpoint) else { return false }
            let file = try? context.download(place)
            return file?.status == 200 && file?.content == content
        }
    }
}
