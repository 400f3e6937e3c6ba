/// Names of fields that only this server uses.
enum ServerFieldName {
    /// In a request, `off` turns off interim responses of the upload protocol, for proxies that fail on them.
    static let interim = "Onward-Interim"
    /// In a request, `?1` requests an explanation of omitted interim responses, in a field of this name in the
    /// response.
    static let explain = "Onward-Explain"

    static let requestFields = [interim, explain]
}
