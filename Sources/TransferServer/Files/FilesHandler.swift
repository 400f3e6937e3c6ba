import HTTPSemantics
import ResumableUpload
import SystemCalls
import UploadStorage

/// Serves files: `PUT` creates or replaces a file, `POST` to a collection creates a file whose name the server chooses,
/// `GET` sends a file with ranges, and `DELETE` removes it. A file appears atomically when its upload is complete.
public struct FilesHandler: TargetHandler, SynchronousHandler {
    private let store: UploadStore
    private let showsActiveTypes: Bool
    private let resourcePolicy: ResourcePolicy
    private let rejectsFormData: Bool

    /// - Parameters:
    ///   - store: the store with the files, which is the same as that of the server.
    ///   - showsActiveTypes: whether types that browsers run or render as pages, such as HTML, SVG and PDF, are shown
    ///     in a sandbox. Otherwise they are attachments, which browsers save.
    ///   - resourcePolicy: which pages may embed files without CORS.
    ///   - rejectsFormData: whether `multipart/form-data` is rejected with status 415, also by `PUT`. HTML forms and
    ///     `curl -F` send this type. Otherwise the entire form is stored as the file. `POST` to a collection always
    ///     rejects this type.
    public init(
        store: UploadStore, showsActiveTypes: Bool = false, resourcePolicy: ResourcePolicy = .sameOrigin,
        rejectsFormData: Bool = false
    ) {
        self.store = store
        self.showsActiveTypes = showsActiveTypes
        self.resourcePolicy = resourcePolicy
        self.rejectsFormData = rejectsFormData
    }

    /// The store ensures that a file is published only once.
    public var completionIsRepeatable: Bool { true }

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
        if rejectsFormData || proposal.target.isCollection, Self.isForm(proposal.fields) {
            return .refuse(Response(ProblemDetails.form))
        }
        if proposal.target.isCollection { return .accept }
        do {
            let name = try Self.existing(PublishedName(segments: proposal.target.segments))
            let current = try attributes(of: name)
            if let refusal = Self.refusal(
                method: proposal.method, fields: proposal.fields, current: current, mayReplace: proposal.mayReplace)
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

    /// Publishes the file under its name.
    public func complete(_ upload: ReceivedUpload) throws -> Response {
        let fields = upload.fields
        let method = upload.method
        let mayReplace = upload.mayReplace
        if upload.target.isCollection {
            // The target was verified when the upload was created.
            let names = FreeNames(
                directory: upload.target.segments, disposition: fields["Content-Disposition"],
                metadata: UploadMetadata(fields))
            let path = collectionPath(of: upload.target)
            return try upload.publish(
                Publication(
                    name: try Self.existing(names.name(0)), fields: FileFields.saved(of: fields), replaces: false,
                    alternatives: { names.name($0) },
                    refused: Self.noFreeName, validated: Self.validated,
                    response: { _, name in
                        Response(status: 201, fields: ["Location": path + Self.encoded(name.segments.suffix(1))])
                    }))
        }
        let location = upload.target.path
        return try upload.publish(
            Publication(
                name: try Self.existing(PublishedName(segments: upload.target.segments)),
                fields: FileFields.saved(of: fields),
                condition: { Self.refusal(method: method, fields: fields, current: $0, mayReplace: mayReplace) },
                refused: Self.preconditionFailed, validated: Self.validated,
                response: { created, _ in
                    created ? Response(status: 201, fields: ["Location": location]) : Response(status: 204)
                }))
    }

    // Every publication contains these responses, although few publications are refused: so they are created once.
    private static let preconditionFailed = Response(ProblemDetails.preconditionFailed)
    private static let noFreeName = Response(ProblemDetails(StoreError.noFreeName))

    /// The response if a condition of the request fails, at creation and again at publication; otherwise `nil`.
    private static func refusal(
        method: Method, fields: Fields, current: PublishedFile.Attributes?, mayReplace: Bool = true
    ) -> Response? {
        if current != nil && !mayReplace { return Response(ProblemDetails.nameTaken) }
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

    private static func existing(_ name: PublishedName?) throws(StoreError) -> PublishedName {
        guard let name else { throw .notFound }
        return name
    }

    private func collectionPath(of target: Target) -> String {
        target.path.hasSuffix("/") ? target.path : target.path + "/"
    }

    private static func encoded(_ segments: some Sequence<String>) -> String {
        segments.map { segment in
            (try? PathSegments(segments: [segment]).percentEncoded.dropFirst()).map(String.init) ?? ""
        }.joined(separator: "/")
    }

    // MARK: Other requests

    /// Sends or deletes a file, or lists a collection.
    public func respond(to request: TargetRequest) -> Response {
        do {
            if request.target.isCollection {
                return try FileListing(store: store, resourcePolicy: resourcePolicy)
                    .response(to: request, directory: request.target.segments)
            }
            let name = try Self.existing(PublishedName(segments: request.target.segments))
            if request.method == .delete { return try remove(name, fields: request.fields) }
            let file = try store.publishedFile(name)
            var fields = FileFields.served(of: file, named: name.lastSegment, showsActiveTypes: showsActiveTypes)
            fields.append("Cross-Origin-Resource-Policy", resourcePolicy.rawValue)
            return Response(status: 200, fields: fields, content: .file(file))
        } catch .targetIsDirectory where request.method != .delete {
            let query = request.target.query.map { "?" + $0 } ?? ""
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
    static let nameTaken = ProblemDetails(
        status: 403, detail: "A file with this name exists, and the token allows only new names.",
        code: "insufficient-scope")
    static let noSuchFile = ProblemDetails(
        status: 404, detail: "The file does not exist. It appears when its upload is complete.", code: "no-such-file")
}

/// Which pages may embed a response without CORS: the values of `Cross-Origin-Resource-Policy` (the Fetch standard).
public enum ResourcePolicy: String, Sendable, Hashable, CaseIterable {
    /// Pages of the server's own origin.
    case sameOrigin = "same-origin"
    /// Pages of the same site, such as those of `app.example` for `files.app.example`.
    case sameSite = "same-site"
    /// Any page.
    case crossOrigin = "cross-origin"
}
