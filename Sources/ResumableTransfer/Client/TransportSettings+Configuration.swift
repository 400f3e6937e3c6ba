extension TransportSettings {
    init(_ configuration: TransferClient.Configuration) {
        self.init(
            caFile: configuration.caFile, proxy: configuration.proxy, httpVersion: configuration.httpVersion,
            connectTimeout: .seconds(30))
    }
}
