import HTTPSemantics
import ResumableUpload

/// The description of how an upload is published as a file, and of the final response.
public struct Publication: Sendable {
    /// The name under which the file is published.
    public var name: PublishedName
    /// Representation metadata, such as Content-Type, to be given back with the file.
    public var fields: Fields
    /// Runs while the name is locked, so that it must not call the store. Evaluates the file that has the name now, or nil if there is none, in one step with the publication. A response
    /// refuses: it becomes the final one and the bytes are dropped.
    public var condition: @Sendable (PublishedFile.Attributes?) -> Response?
    /// Whether a file of this name is replaced. If not, the next name of `alternatives` is tried on a collision.
    public var replaces: Bool
    /// The name for the n-th further try, n counting from 1; nil ends the search.
    public var alternatives: @Sendable (Int) -> PublishedName?
    /// The final response, saved before the file appears: whether the name is new, and which name it became.
    public var response: @Sendable (_ created: Bool, _ name: PublishedName) -> Response
    /// Completes the response with the validators of the new file, known only once it is in its place.
    public var validated: @Sendable (Response, PublishedFile.Attributes) -> Response
    /// The final response if, after an interruption, the publication turns out to be impossible.
    public var refused: Response

    /// A publication under `name`; see the properties for each part.
    public init(
        name: PublishedName,
        fields: Fields = [:],
        replaces: Bool = true,
        alternatives: @escaping @Sendable (Int) -> PublishedName? = { _ in nil },
        condition: @escaping @Sendable (PublishedFile.Attributes?) -> Response? = { _ in nil },
        refused: Response = Response(status: 409),
        validated: @escaping @Sendable (Response, PublishedFile.Attributes) -> Response = { response, _ in
            response
        },
        response: @escaping @Sendable (_ created: Bool, _ name: PublishedName) -> Response
    ) {
        self.name = name
        self.fields = fields
        self.condition = condition
        self.replaces = replaces
        self.alternatives = alternatives
        self.response = response
        self.validated = validated
        self.refused = refused
    }
}
