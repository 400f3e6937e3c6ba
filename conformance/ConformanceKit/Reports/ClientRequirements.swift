/// The requirements of `Tests/requirements.tsv` for clients. Each line has an ID, a level, a section and a text.
enum ClientRequirements {
    static let table = #"""
        STF-13|MUST|4.1|Invalid Upload-Offset/Upload-Complete/Upload-Length in responses is treated as absent
        STF-14|MUST|4.1.4|Unknown Upload-Limit keys are ignored
        STF-15|MUST|4.1.4|Known Upload-Limit key with wrong type makes the entire field invalid
        STF-16|MUST|RFC9651 3.2|Last duplicate Upload-Limit key wins
        RED-02|MAY|4.3.1|307/308 on retrieval/append is followed with same method
        RED-03|MUST|policy|Credentials are not sent to another origin on redirect
        RNG-27|MUST|RFC9110 15.3.7.3|Partial responses are combined only under the same strong validator
        RNG-28|MUST|RFC9110 15.3.7|Client checks Content-Range start and total before appending
        RNG-29|MUST|RFC9110 15.3.7|200 to a ranged request restarts at zero
        RNG-30|SHOULD|RFC9110 15.5.17|416 with */N and local size N → finished after validator check
        RNG-31|MUST|RFC9110 13.1.5|If-Range never sent without Range nor with a weak tag
        RNG-32|SHOULD|RFC9112 8|Truncated 206/200 (short of Content-Length) is resumed
        CLI-01|MUST|App B|Draft client sends Upload-Draft-Interop-Version on all requests
        CLI-02|MUST|App B|104 with missing or other version is ignored
        CLI-03|MUST|4.4.1|append sends PATCH, application/partial-upload, Upload-Offset, Upload-Complete
        CLI-04|SHOULD|4.1.3|Length is sent as soon as known
        CLI-05|MUST|4.1.3|Indications of length are consistent
        CLI-06|MUST|4.6|Never more than one transfer at a time per upload
        CLI-07|MUST|4.3.1|No HEAD while own creation/append is running
        CLI-08|SHOULD|4.4.1|Offset for append comes from the immediately preceding response
        CLI-09|MUST|4.3.1|If data at the returned offset cannot be produced, fail and do not continue
        CLI-10|SHOULD|4.3.1|Offset greater than sent is accepted if data can be provided
        CLI-11|SHOULD|4.1.2|After a response with ?1 no resumption
        CLI-12|MAY|4.2.1|5xx or lost connection → HEAD then resume
        CLI-13|SHOULD|4.2.1|4xx without ?1 is not retried unless its semantics allow
        CLI-14|SHOULD|4.1.4|413 → retry smaller within limits, never same size
        CLI-15|SHOULD|4.1.4|413 with unknown limits → OPTIONS
        CLI-16|MUST|4.1.4|Known max-append-size / min-append-size are obeyed (also at creation)
        CLI-17|SHOULD|4.1.4|max-size below the intended amount → stop and DELETE
        CLI-18|SHOULD|4.1.4|max-age passed → no further access
        CLI-19|SHOULD|4.2.2|Differing Location in messages of one request → abort and cancel
        CLI-20|MUST|4.2.2|Final ?1 response's different Location is not an error
        CLI-21|MAY|5|104 counts as permission to send content under Expect: 100-continue
        CLI-22|MUST|RFC9110 15.2|Any number of 1xx, incl. unknown, are tolerated
        CLI-23|MUST|11.1|Works when no 104 ever arrives
        CLI-24|SHOULD|RFC9110 10.2.2|Relative Location is resolved against the request URI
        CLI-25|SHOULD|4.1.1|Released buffers only up to acknowledged offsets
        CLI-26|MUST|4.2.1|Empty representation is one request with ?1 and empty content
        CLI-27|MUST|4.4.1|All data sent with ?0 is finished by PATCH ?1 without content
        CLI-28|MUST|8|Content codings are constant over the upload and not repeated on appends
        CLI-29|SHOULD|12|Content is sent incrementally
        CLI-30|SHOULD|10|Digest mismatch reported by the server fails the upload
        CLI-31|SHOULD|13|Upload URI is kept secret (not logged, not sent to other origins)
        CLI-32|SHOULD|policy|409 → HEAD once and continue, bounded
        CLI-33|MUST|4.1.1|Progress offsets going down are treated as failure
        CLI-34|SHOULD|issue 3484|2xx without Upload-Complete after a ?1 request counts as complete
        CLI-35|SHOULD|policy|Backoff with jitter and resume after process restart from stored URI, source identity checked
        CLI-36|SHOULD|RFC9112 9.5|Early final response while sending stops the body
        CLI-37|SHOULD|4.2.1|Disposition type inline with filename and filename* for names
        CLI-38|SHOULD|4.4.2|HEAD is used for retrieval and final ?1 with lost response triggers one empty PATCH ?1 to fetch the answer, if wanted
        """#
}
