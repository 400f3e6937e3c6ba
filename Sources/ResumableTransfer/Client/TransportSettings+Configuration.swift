extension TransportSettings {
    init(_ configuration: TransferClient.Configuration) {
        self.init(
            caFile: configuration.caPath, proxy: configuration.proxy, httpVersion: configuration.httpVersion,
            connectTimeout: .seconds(30))
    }
}
