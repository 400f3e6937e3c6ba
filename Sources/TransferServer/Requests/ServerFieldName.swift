/// Names of fields that this server alone knows.
enum ServerFieldName {
    /// In a request, `off`: no interim response of the upload protocol, for proxies that break on it.
    static let interim = "Onward-Interim"
    /// In a request, `?1`: say in the response, in a field of this name, why there was no interim response.
    static let explain = "Onward-Explain"

    static let requestFields = [interim, explain]
}
