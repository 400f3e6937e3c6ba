import ConformanceKit
// All files of these tests use it.
@_exported import HTTPTestSupport

/// A response as ConformanceKit received it. HTTPSemantics has another type of this name.
typealias Response = ConformanceKit.Response
