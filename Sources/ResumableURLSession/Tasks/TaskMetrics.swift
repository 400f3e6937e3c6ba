import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
@_spi(Reflection) import Swift

// FoundationNetworking declares the classes of metrics and never creates them. Their properties cannot be set or
// overridden in another module, and its library does not even contain their setters. So the classes here have the same
// stored properties, and ``SameLayout`` changes the class of an object that was filled.

/// The properties of `URLSessionTaskMetrics`, in the same order.
final class TaskMetricsProperties: NSObject {
    var transactionMetrics: [URLSessionTaskTransactionMetrics] = []
    var taskInterval = DateInterval()
    var redirectCount = 0
}

/// The properties of `URLSessionTaskTransactionMetrics`, in the same order.
final class TransactionMetricsProperties: NSObject {
    let request: URLRequest
    var response: URLResponse?

    var fetchStartDate: Date?
    var domainLookupStartDate: Date?
    var domainLookupEndDate: Date?
    var connectStartDate: Date?
    var secureConnectionStartDate: Date?
    var secureConnectionEndDate: Date?
    var connectEndDate: Date?
    var requestStartDate: Date?
    var requestEndDate: Date?
    var responseStartDate: Date?
    var responseEndDate: Date?

    var countOfRequestBodyBytesBeforeEncoding: Int64 = 0
    var countOfRequestBodyBytesSent: Int64 = 0
    var countOfRequestHeaderBytesSent: Int64 = 0
    var countOfResponseBodyBytesAfterDecoding: Int64 = 0
    var countOfResponseBodyBytesReceived: Int64 = 0
    var countOfResponseHeaderBytesReceived: Int64 = 0

    var networkProtocolName: String?
    var remoteAddress: String?
    var remotePort: String?
    var localAddress: String?
    var localPort: String?
    var negotiatedTLSCipherSuite: tls_ciphersuite_t?
    var negotiatedTLSProtocolVersion: tls_protocol_version_t?
    var isCellular = false
    var isExpensive = false
    var isConstrained = false
    var isProxyConnection = false
    var isReusedConnection = false
    var isMultipath = false
    var resourceFetchType = URLSessionTaskMetrics.ResourceFetchType.unknown
    var domainResolutionProtocol = URLSessionTaskMetrics.DomainResolutionProtocol.unknown

    init(request: URLRequest) {
        self.request = request
    }
}

extension URLSessionTaskMetrics {
    /// The metrics of a task; without transactions if this version of FoundationNetworking has other properties.
    static func of(
        _ transactions: [URLSessionTaskTransactionMetrics], during interval: DateInterval, redirectCount: Int
    ) -> URLSessionTaskMetrics {
        let properties = TaskMetricsProperties()
        properties.transactionMetrics = transactions
        properties.taskInterval = interval
        properties.redirectCount = redirectCount
        return SameLayout.convert(properties, to: URLSessionTaskMetrics.self) ?? URLSessionTaskMetrics()
    }
}

extension URLSessionTaskTransactionMetrics {
    /// The metrics of one request; `nil` if this version of FoundationNetworking has other properties.
    static func of(
        _ metrics: RequestMetrics, request: URLRequest, response: HTTPURLResponse?
    ) -> URLSessionTaskTransactionMetrics? {
        let properties = TransactionMetricsProperties(request: request)
        properties.response = response
        properties.fill(metrics)
        return SameLayout.convert(properties, to: URLSessionTaskTransactionMetrics.self)
    }
}

extension TransactionMetricsProperties {
    fileprivate func fill(_ metrics: RequestMetrics) {
        let date: (Duration?) -> Date? = { time in
            time.map { metrics.startedAt.addingTimeInterval($0 / .seconds(1)) }
        }
        fetchStartDate = metrics.startedAt
        domainLookupEndDate = date(metrics.nameLookup)
        if metrics.nameLookup != nil { domainLookupStartDate = metrics.startedAt }
        if let connect = metrics.connect {
            connectStartDate = domainLookupEndDate
            connectEndDate = date(metrics.secureConnect ?? connect)
        }
        if metrics.secureConnect != nil {
            secureConnectionStartDate = date(metrics.connect)
            secureConnectionEndDate = date(metrics.secureConnect)
        }
        requestStartDate = date(metrics.requestStart)
        requestEndDate = date(metrics.requestEnd)
        responseStartDate = date(metrics.responseStart)
        if metrics.responseStart != nil { responseEndDate = date(metrics.duration) }
        countOfRequestBodyBytesBeforeEncoding = metrics.sent
        countOfRequestBodyBytesSent = metrics.sent
        countOfResponseBodyBytesReceived = metrics.received
        countOfResponseBodyBytesAfterDecoding = metrics.received
        networkProtocolName = metrics.httpVersion.map { $0 == "HTTP/2" ? "h2" : $0.lowercased() }
        isReusedConnection = metrics.isConnectionReused
        resourceFetchType = .networkLoad
    }
}

/// Changes the class of an object to another class with the same stored properties.
enum SameLayout {
    private struct Property: Equatable {
        let name: String
        let offset: Int
        let type: ObjectIdentifier
    }

    /// Converts an object to which there is no other reference.
    /// - Returns: `nil` if the names, types or offsets of the stored properties of the classes differ.
    @inline(never)
    static func convert<Target: AnyObject>(_ object: consuming AnyObject, to target: Target.Type) -> Target? {
        let expected = properties(of: target)
        guard !expected.isEmpty, properties(of: type(of: object)) == expected else { return nil }
        // The first word of an object is its class.
        let pointer = Unmanaged.passRetained(object).toOpaque()
        pointer.storeBytes(of: unsafeBitCast(target as AnyClass, to: UnsafeRawPointer.self), as: UnsafeRawPointer.self)
        return Unmanaged<Target>.fromOpaque(pointer).takeRetainedValue()
    }

    private static func properties(of type: AnyClass) -> [Property] {
        var properties: [Property] = []
        // Without this option the function visits the properties of structures only.
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { name, offset, type, _ in
            properties.append(Property(name: String(cString: name), offset: offset, type: ObjectIdentifier(type)))
            return true
        }
        return properties
    }
}
