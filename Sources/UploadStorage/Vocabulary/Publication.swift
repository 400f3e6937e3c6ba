import HTTPSemantics
import ResumableUpload

/// The description of how an upload is published as a file, and of the final response.
public struct Publication: Sendable {
    /// The name under which the file is published.
    public var name: PublishedName
    /// The representation metadata, such as Content-Type, that is served with the file.
    public var fields: Fields
    /// Evaluates the file that has the name now, or nil if there is none. The file cannot change between this call and
    /// the publication. If a response is returned, nothing is published, this response is the final response, and the
    /// bytes are removed. The name is locked during the call, so the closure must not call the store.
    public var condition: @Sendable (PublishedFile.Attributes?) -> Response?
    /// Whether an existing file with this name is replaced. Otherwise the next name of `alternatives` is tried if the
    /// name is in use.
    public var replaces: Bool
    /// Returns the name for the n-th further attempt, where n begins at 1; nil ends the search.
    public var alternatives: @Sendable (Int) -> PublishedName?
    /// Returns the final response, which is saved before the file appears. The arguments are whether the name is new,
    /// and the name that was chosen.
    public var response: @Sendable (_ created: Bool, _ name: PublishedName) -> Response
    /// Completes the response with the validators of the new file, which are known only once the file is published.
    public var validated: @Sendable (Response, PublishedFile.Attributes) -> Response
    /// The final response if, after an interruption, the publication turns out to be impossible.
    public var refused: Response

    /// Creates a publication under `name`. The parameters are described at the properties.
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
