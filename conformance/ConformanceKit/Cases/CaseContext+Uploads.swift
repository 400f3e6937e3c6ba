extension CaseContext {
    // MARK: - Requests

    /// A creation (section 4.2) at the target of the run.
    /// - Parameters:
    ///   - isComplete: whether the content is the complete representation; `nil` omits the field.
    ///   - length: `Upload-Length`.
    func creation(
        complete isComplete: Bool?, length: Int? = nil, _ content: Request.Content = .none, in version: Profile? = nil
    ) -> Request {
        let version = version ?? profile
        var request = Request(
            subject.method, subject.newTarget(), version.versionFields + subject.extraFields, content)
        if let isComplete { request.fields.append(version.completeness(isComplete)) }
        if let length { request.fields.append(("Upload-Length", "\(length)")) }
        return request
    }

    /// An append (section 4.4).
    func append(
        _ upload: Upload, at offset: Int64, complete isComplete: Bool?, length: Int? = nil,
        _ content: Request.Content = .none, in version: Profile? = nil
    ) -> Request {
        let version = version ?? profile
        var request = Request(
            "PATCH", upload.endpoint.target, version.versionFields + subject.extraFields, content)
        if version.hasMediaType { request.fields.append(("Content-Type", "application/partial-upload")) }
        request.fields.append(("Upload-Offset", "\(offset)"))
        if let isComplete { request.fields.append(version.completeness(isComplete)) }
        if let length { request.fields.append(("Upload-Length", "\(length)")) }
        return request
    }

    /// An offset retrieval (section 4.3).
    func retrieval(_ upload: Upload, _ method: String = "HEAD", in version: Profile? = nil) -> Request {
        Request(method, upload.endpoint.target, (version ?? profile).versionFields + subject.extraFields)
    }

    /// A cancellation (section 4.5).
    func cancellation(_ upload: Upload, in version: Profile? = nil) -> Request {
        Request("DELETE", upload.endpoint.target, (version ?? profile).versionFields + subject.extraFields)
    }

    // MARK: - Exchanges

    func exchange(_ request: Request, with upload: Upload) throws -> Response {
        try exchange(request, at: upload.endpoint)
    }

    /// Sends an append and reads its response.
    func appending(
        _ upload: Upload, at offset: Int64, complete isComplete: Bool?, length: Int? = nil,
        _ content: Request.Content = .none, in version: Profile? = nil
    ) throws -> Response {
        try exchange(
            append(upload, at: offset, complete: isComplete, length: length, content, in: version), with: upload)
    }

    /// Returns the upload whose URL is in a Location field.
    func upload(at location: String?, of request: Request, _ seen: String) throws -> Upload {
        let location = try require(location, "Location of the upload resource", seen)
        let endpoint = try require(
            subject.endpoint.at(request.target).resolving(location), "a Location that can be followed", location)
        let upload = Upload(location: location, endpoint: endpoint)
        if !uploads.contains(where: { $0.endpoint == endpoint }) { uploads.append(upload) }
        return upload
    }

    /// Returns the upload whose URL is in the response to a creation: in the first 104, or else in the final response.
    func upload(from response: Response, to request: Request) throws -> Upload {
        let announced = response.announcements.first?.location
        let final = profile.isComplete(response) == true && profile.rank >= 7 ? nil : response.location
        return try upload(at: announced ?? final ?? response.location, of: request, response.summary)
    }

    /// Retrieves the offset of an upload.
    /// - Throws: ``Unmet`` if the response is not a success or has no offset.
    func state(of upload: Upload, in version: Profile? = nil) throws -> UploadState {
        let response = try exchange(retrieval(upload, in: version), with: upload)
        try expectSuccess(response, "to an offset retrieval")
        let offset = try require(
            response.integer("Upload-Offset"), "Upload-Offset in the response to HEAD", response.summary)
        return UploadState(
            offset: offset, isComplete: (version ?? profile).isComplete(response), response: response)
    }

    func expectState(of upload: Upload, offset: Int64, complete isComplete: Bool = false) throws {
        let state = try state(of: upload)
        try expect(
            state.offset == offset, "Upload-Offset: \(offset)", "Upload-Offset: \(state.offset)")
        try expect(
            state.isComplete == isComplete, "\(isComplete ? "a complete" : "an incomplete") upload",
            state.response.summary)
    }

    /// Expects that HEAD and an append for the upload get 404 or 410.
    func expectGone(_ upload: Upload, _ why: String) throws {
        let statuses = profile.rank <= 6 ? [404] : [404, 410]
        try expect(exchange(retrieval(upload), with: upload), isOneOf: statuses, "to HEAD, because \(why)")
        let append = try appending(upload, at: 0, complete: false, .bytes(bytes(partSize)))
        try expect(append, isOneOf: statuses, "to an append, because \(why)")
    }

    // MARK: - Prepared uploads

    /// Creates an incomplete upload with `count` bytes, whose length is unknown unless `length` is given.
    func newUpload(_ count: Int = 0, length: Int? = nil, in version: Profile? = nil) throws -> Upload {
        try setup {
            let content: Request.Content = .bytes(bytes(count))
            let request = creation(complete: false, length: length, content, in: version)
            let response = try exchange(request)
            try expectSuccess(response, "to a creation with ?0")
            return try upload(from: response, to: request)
        }
    }

    /// Creates an upload of `count` bytes, and completes it.
    func completedUpload(_ count: Int) throws -> Upload {
        let upload = try newUpload(count)
        try setup {
            let response = try appending(upload, at: Int64(count), complete: true, .bytes([]))
            try expectSuccess(response, "to an append that completes the upload")
        }
        return upload
    }

    /// Sends a creation with `?1` and the first `count` of `total` bytes, and returns the upload that a 104 announced.
    func announcedUpload(
        sending count: Int, of total: Int, in version: Profile? = nil
    ) throws -> (connection: RawConnection, upload: Upload, request: Request) {
        try setup {
            try requireAnnouncements()
            let connection = try connect()
            let request = creation(complete: true, .declared(Int64(total)), in: version)
            setLastRequest(request, connection.endpoint)
            try connection.send(request)
            let interim = try awaitAnnouncement(on: connection)
            let upload = try upload(at: interim.location, of: request, interim.summary)
            if count > 0 { try connection.send(bytes(count)) }
            return (connection, upload, request)
        }
    }

    /// Returns the first 104 on a connection; a 100 may precede it.
    func awaitAnnouncement(on connection: RawConnection) throws -> InterimResponse {
        while let interim = try connection.readInterim() {
            if interim.status == 104 { return interim }
        }
        throw Unmet("104 before the final response", seen: "the final response")
    }

    // MARK: - Content

    /// The number of bytes in the content of most requests: the smallest number that the subject's limits allow.
    var partSize: Int { subject.smallestContentSize }

    /// Returns `count` bytes of the test content, starting at `offset`.
    func bytes(_ count: Int, from offset: Int = 0) -> [UInt8] { TestContent.bytes(count, from: offset) }

    func requireAnnouncements() throws {
        if subject.isAnnouncing != true { throw skip("no 104 is sent") }
    }

    /// Sends GET for a finished file.
    func download(_ fileURL: Endpoint, _ fields: [(String, String)] = []) throws -> Response {
        try exchange(Request("GET", fileURL.target, fields + subject.extraFields), at: fileURL)
    }

    /// Returns the URL at which the file of a finished upload can be read.
    func fileURL(of response: Response, to request: Request) throws -> Endpoint {
        guard let source = subject.downloadSource else {
            throw skip("finished files cannot be read at a URL of the target")
        }
        guard let fileURL = subject.fileURL(of: response, to: request, in: profile) else {
            throw Unmet("\(source.rawValue) of the finished file", seen: response.summary)
        }
        return fileURL
    }

    /// Cancels the uploads that the case created. Responses and failures are ignored.
    func cancelUploads() {
        for upload in uploads.prefix(20) {
            do {
                let connection = try RawConnection(
                    upload.endpoint, timeout: min(subject.timeout, .seconds(1)), transcript: Transcript(),
                    observer: Unobserved.shared)
                _ = try connection.exchange(cancellation(upload))
            } catch {
                return
            }
        }
        uploads = []
    }
}

/// An upload resource of the subject.
struct Upload: Sendable {
    /// The value of Location, as the subject sent it.
    let location: String
    let endpoint: Endpoint
}

/// The state of an upload as a response to HEAD reported it.
struct UploadState: Sendable {
    let offset: Int64
    let isComplete: Bool?
    let response: Response
}
