import HTTPSemantics
import ResumableUpload
import SystemCalls
import UploadStorage

/// Serves files: `PUT` creates or replaces a file, `POST` to a collection creates a file whose name the server chooses,
/// `GET` sends a file with ranges, and `DELETE` removes it. A file appears atomically when its upload is complete, and
/// has been checked.
public struct FilesHandler: TargetHandler, SynchronousHandler {
    private let store: UploadStore
    private let shouldShowActiveTypes: Bool
    private let resourcePolicy: ResourcePolicy
    private let shouldRejectFormData: Bool
    private let check: (@Sendable (ReceivedUpload) async throws -> PublicationVerdict)?
    /// Whether a client is redirected to the storage of a file, if the storage can send the file itself.
    package var shouldRedirectDownloads = false

    /// - Parameters:
    ///   - store: the store with the files, which is the same as that of the server.
    ///   - shouldShowActiveTypes: whether types that browsers run or render as pages, such as HTML, SVG and PDF, are shown
    ///     in a sandbox. Otherwise they are attachments, which browsers save.
    ///   - resourcePolicy: the pages that may embed files without CORS.
    ///   - shouldRejectFormData: whether `multipart/form-data` is rejected with status 415, even by `PUT`. HTML forms and
    ///     `curl -F` send this type. Otherwise the entire form is stored as the file. `POST` to a collection always
    ///     rejects this type.
    ///   - check: decides about each complete file before it is published, for example with a virus scanner. It reads the
    ///     upload, and does not publish it. It runs on the thread of the connection, so it may block. If it throws an
    ///     error, the file is not published, and the client gets 503. The bytes of a resumable upload are kept, and the
    ///     check is called again when the client repeats the request that completes the upload. A ``TargetUnavailable``
    ///     sets the time after which the client should do that.
    public init(
        store: UploadStore, shouldShowActiveTypes: Bool = false, resourcePolicy: ResourcePolicy = .sameOrigin,
        shouldRejectFormData: Bool = false,
        check: (@Sendable (ReceivedUpload) async throws -> PublicationVerdict)? = nil
    ) {
        self.store = store
        self.shouldShowActiveTypes = shouldShowActiveTypes
        self.resourcePolicy = resourcePolicy
        self.shouldRejectFormData = shouldRejectFormData
        self.check = check
    }

    /// The store ensures that a file is published only once.
    public var isCompletionRepeatable: Bool { true }

    /// The fields that name and describe the file, and the conditions, which are evaluated again at publication.
    public var storedFields: [String] { Self.storedNames }

    private static let storedNames =
        FileFields.representation + [
            "Content-Disposition", TusProtocol.metadataField, "If-Match", "If-None-Match", "If-Modified-Since",
            "If-Unmodified-Since",
        ]

    /// Stores only the name and the type of `Upload-Metadata`. The field is not stored if it is malformed.
    public func storedPart(of fields: Fields) -> Fields {
        var stored = fields
        stored.remove(TusProtocol.metadataField)
        if let value = UploadMetadata(fields)?.value { stored.append(TusProtocol.metadataField, value) }
        return stored
    }

    private static let collectionMethods: [Method] = [.get, .head, .post, .options]
    private static let fileMethods: [Method] = [.get, .head, .put, .delete, .options]

    /// The methods of a collection (`GET`, `HEAD`, `POST`) or of a file (`GET`, `HEAD`, `PUT`, `DELETE`), and
    /// `OPTIONS`.
    public func methods(of target: Target) -> [Method] {
        target.isCollection ? Self.collectionMethods : Self.fileMethods
    }

    // MARK: Uploads

    /// Accepts a file if its name is valid and the conditions of the request hold.
    public func accept(_ proposal: UploadProposal) -> Acceptance {
        // Without this check the entire form would be stored as the file.
        if shouldRejectFormData || proposal.target.isCollection, Self.isForm(proposal.fields) {
            return .refuse(Response(ProblemDetails.form))
        }
        do {
            if proposal.target.isCollection {
                let names = FreeNames(
                    directory: proposal.target.segments, disposition: proposal.fields["Content-Disposition"],
                    metadata: UploadMetadata(proposal.fields))
                try store.requirePossible(Self.valid(names.name(0)))
                return .accept
            }
            let name = try Self.valid(PublishedName(segments: proposal.target.segments))
            try store.requirePossible(name)
            let current = try attributes(of: name)
            if let refusal = Self.refusal(
                method: proposal.method, fields: proposal.fields, current: current, canReplace: proposal.canReplace)
            {
                return .refuse(refusal)
            }
            return .accept
        } catch {
            return .refuse(Response(ProblemDetails(error)))
        }
    }

    /// Whether the content is a form, even if the parameters of its media type are malformed.
    private static func isForm(_ fields: Fields) -> Bool {
        fields.values("Content-Type").contains { value in
            let type = value.prefix { $0 != ";" && $0 != "," }.filter { $0 != " " && $0 != "\t" }
            return type.lowercased() == "multipart/form-data"
        }
    }

    /// Checks the file, and publishes it under its name or under the name that the check has returned.
    /// - Throws: ``StoreError`` if the file cannot be published, or the error of the check.
    public func complete(_ upload: ReceivedUpload) async throws -> Response {
        guard let check else { return try completeSynchronously(upload) }
        switch try await FileCheck(upload).run(check) {
        case .accepted: return try completeSynchronously(upload)
        case .refused(let response): return response
        case .moved(let resource, let path):
            do throws(StoreError) { return try publish(upload, at: resource) } catch {
                // The client did not choose this name.
                guard error.isAboutName else { throw error }
                upload.check?.outcome = .failed
                throw FileCheck.failure("it returned the path \(path), but \(error)")
            }
        }
    }

    var isCompletedSynchronously: Bool { check == nil }

    /// Publishes the file under its name.
    func completeSynchronously(_ upload: ReceivedUpload) throws -> Response {
        try publish(upload, at: ReceivedUpload.Resource(target: upload.target, canReplace: upload.canReplace))
    }

    private func publish(_ upload: ReceivedUpload, at place: ReceivedUpload.Resource) throws(StoreError) -> Response {
        let fields = upload.fields
        let method = upload.method
        let isMoved = place.target.path != upload.target.path
        if upload.target.isCollection || place.target.isCollection {
            let names = freeNames(for: upload, at: place.target)
            let path = collectionPath(of: place.target)
            return try upload.publish(
                Publication(
                    name: try Self.valid(names.name(0)), fields: FileFields.saved(of: fields), canReplace: false,
                    alternatives: { names.name($0) },
                    condition: { method == .put ? Self.refusal(method: method, fields: fields, current: $0) : nil },
                    refused: Self.noFreeName, validated: Self.validated,
                    response: { _, name in
                        Response(status: 201, fields: ["Location": path + Self.encoded(name.segments.suffix(1))])
                    }))
        }
        let location = place.target.path
        let canReplace = place.canReplace
        return try upload.publish(
            Publication(
                name: try Self.valid(PublishedName(segments: place.target.segments)),
                fields: FileFields.saved(of: fields),
                condition: { Self.refusal(method: method, fields: fields, current: $0, canReplace: canReplace) },
                refused: Self.preconditionFailed, validated: Self.validated,
                response: { created, _ in
                    Response(status: created ? 201 : 204, fields: created || isMoved ? ["Location": location] : [:])
                }))
    }

    /// The names for an upload to a collection, or for a file that a check has moved into a collection.
    private func freeNames(for upload: ReceivedUpload, at target: Target) -> FreeNames {
        let segments = target.segments
        if !target.isCollection { return FreeNames(directory: segments.dropLast(), name: segments.last ?? "") }
        if !upload.target.isCollection {
            return FreeNames(directory: segments, name: upload.target.segments.last ?? "")
        }
        return FreeNames(
            directory: segments, disposition: upload.fields["Content-Disposition"],
            metadata: UploadMetadata(upload.fields))
    }

    // Every publication contains these responses, although few publications are refused: so they are created once.
    private static let preconditionFailed = Response(ProblemDetails.preconditionFailed)
    private static let noFreeName = Response(ProblemDetails(StoreError.noFreeName))

    /// The response if a condition of the request fails, at creation and again at publication; otherwise `nil`.
    private static func refusal(
        method: Method, fields: Fields, current: PublishedFile.Attributes?, canReplace: Bool = true
    ) -> Response? {
        if current != nil && !canReplace { return Response(ProblemDetails.nameInUse) }
        let now = HTTPDate(secondsSinceEpoch: SystemClock.realtimeSeconds())
        let validators = current.map {
            Validators(
                entityTag: $0.entityTag, lastModified: HTTPDate(secondsSinceEpoch: $0.modifiedSeconds), date: now)
        }
        let outcome = Preconditions(fields: fields, now: now).evaluate(method: method, current: validators)
        return outcome == .proceed ? nil : Response(ProblemDetails.preconditionFailed)
    }

    /// Adds the validators of the file to the response of a publication. This function is also the value of
    /// ``StoreConfiguration/validated``, so that a recovered publication has the same response.
    @Sendable public static func validated(
        _ response: Response, _ attributes: PublishedFile.Attributes
    ) -> Response {
        var response = response
        response.fields.set("ETag", attributes.entityTag.serialized)
        response.fields.set(
            "Last-Modified", HTTPDate(secondsSinceEpoch: attributes.modifiedSeconds).serialized)
        return response
    }

    private func attributes(of name: PublishedName) throws(StoreError) -> PublishedFile.Attributes? {
        do {
            return try store.publishedFile(name).attributes
        } catch .notFound {
            return nil
        }
    }

    /// - Throws: `notFound` if the name is not valid.
    private static func valid(_ name: PublishedName?) throws(StoreError) -> PublishedName {
        guard let name else { throw .notFound }
        return name
    }

    /// The path of a collection, or of the collection that contains a file.
    private func collectionPath(of target: Target) -> String {
        if target.isCollection { return target.path.hasSuffix("/") ? target.path : target.path + "/" }
        return String(target.path[...(target.path.lastIndex(of: "/") ?? target.path.startIndex)])
    }

    private static func encoded(_ segments: some Sequence<String>) -> String {
        segments.map { segment in
            (try? PathSegments(segments: [segment]).percentEncoded.dropFirst()).map(String.init) ?? ""
        }.joined(separator: "/")
    }

    // MARK: Other requests

    /// The buffer of a connection has no room for the head of a redirection with a much longer query, which no client
    /// needs. See `MicroHTTPDaemon.Options.memoryForOwnHeads`.
    static let maxRedirectedQuery = 8 << 10

    /// Sends or deletes a file, or lists a collection.
    public func respond(to request: TargetRequest) -> Response {
        do {
            if request.target.isCollection {
                return try FileListing(store: store, resourcePolicy: resourcePolicy)
                    .response(to: request, directory: request.target.segments)
            }
            let name = try Self.valid(PublishedName(segments: request.target.segments))
            if request.method == .delete { return try remove(name, fields: request.fields) }
            let file = try store.publishedFile(name)
            var fields = FileFields.served(
                of: file, named: name.lastSegment, shouldShowActiveTypes: shouldShowActiveTypes)
            fields.append("Cross-Origin-Resource-Policy", resourcePolicy.rawValue)
            return Response(status: 200, fields: fields, content: content(of: file, fields))
        } catch .targetIsDirectory where request.method != .delete {
            let query = request.target.query.flatMap { $0.utf8.count <= Self.maxRedirectedQuery ? "?" + $0 : nil } ?? ""
            return Response(status: 308, fields: ["Location": request.target.path + "/" + query])
        } catch  where [.notFound, .parentIsFile, .targetIsSpecial].contains(error) {
            return Response(ProblemDetails.noSuchFile)
        } catch {
            return Response(ProblemDetails(error))
        }
    }

    private func remove(_ name: PublishedName, fields: Fields) throws(StoreError) -> Response {
        do {
            try store.remove(name) { Self.refusal(method: .delete, fields: fields, current: $0) == nil }
            return Response(status: 204)
        } catch .preconditionFailed {
            return Response(ProblemDetails.preconditionFailed)
        }
    }
}

extension ProblemDetails {
    static let form = ProblemDetails(
        status: 415,
        detail: "Forms are not supported, because the stored file would contain the entire form. Send the file itself"
            + " as the content, with curl -T instead of curl -F.",
        code: "unsupported-media-type")
    static let nameInUse = ProblemDetails(
        status: 403, detail: "A file with this name exists, and the token allows only new names.",
        code: "insufficient-scope")
    static let noSuchFile = ProblemDetails(
        status: 404, detail: "There is no such file or folder. A file appears when its upload is complete.",
        code: "no-such-file")
}

/// The pages that may embed a response without CORS: the values of `Cross-Origin-Resource-Policy` (the Fetch standard).
public enum ResourcePolicy: String, Sendable, Hashable, CaseIterable {
    /// Pages of the server's own origin.
    case sameOrigin = "same-origin"
    /// Pages of the same site, such as those of `app.example` for `files.app.example`.
    case sameSite = "same-site"
    /// Any page.
    case crossOrigin = "cross-origin"
}
