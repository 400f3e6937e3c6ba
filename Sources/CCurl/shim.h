#ifndef ONWARD_CCURL_SHIM_H
#define ONWARD_CCURL_SHIM_H

#include <stdint.h>
#include <curl/curl.h>

/* libcurl's variadic functions with fixed arguments: Swift cannot call variadics. The parentheses around the names of
   functions prevent the use of the macros of the same names, which check the types of the arguments. */

static inline CURLcode
onward_easy_set_long(CURL *easy, CURLoption option, long value)
{
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode
onward_easy_set_offset(CURL *easy, CURLoption option, int64_t value)
{
    return (curl_easy_setopt)(easy, option, (curl_off_t)value);
}

static inline CURLcode
onward_easy_set_string(CURL *easy, CURLoption option, const char *value)
{
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode
onward_easy_set_pointer(CURL *easy, CURLoption option, void *value)
{
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode
onward_easy_set_list(CURL *easy, CURLoption option, struct curl_slist *value)
{
    return (curl_easy_setopt)(easy, option, value);
}

/* CURLOPT_READFUNCTION, CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION */
static inline CURLcode
onward_easy_set_data_function(CURL *easy, CURLoption option, size_t (*value)(char *, size_t, size_t, void *))
{
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode
onward_easy_set_seek_function(CURL *easy, int (*value)(void *, curl_off_t, int))
{
    return (curl_easy_setopt)(easy, CURLOPT_SEEKFUNCTION, value);
}

static inline CURLcode
onward_easy_set_prereq_function(CURL *easy, int (*value)(void *, char *, char *, int, int))
{
    return (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, value);
}

static inline int64_t
onward_easy_offset(CURL *easy, CURLINFO info)
{
    curl_off_t value = 0;
    (curl_easy_getinfo)(easy, info, &value);
    return value;
}

static inline long
onward_easy_long(CURL *easy, CURLINFO info)
{
    long value = 0;
    (curl_easy_getinfo)(easy, info, &value);
    return value;
}

static inline curl_socket_t
onward_easy_socket(CURL *easy)
{
    curl_socket_t value = CURL_SOCKET_BAD;
    (curl_easy_getinfo)(easy, CURLINFO_ACTIVESOCKET, &value);
    return value;
}

static inline const char *
onward_easy_text(CURL *easy, CURLINFO info)
{
    const char *value = NULL;
    (curl_easy_getinfo)(easy, info, &value);
    return value;
}

static inline CURLcode
onward_easy_set_socket_functions(CURL *easy, int (*opened)(void *, curl_socket_t, curlsocktype),
                                 int (*close)(void *, curl_socket_t))
{
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_SOCKOPTFUNCTION, opened);
    if(code == CURLE_OK)
        code = (curl_easy_setopt)(easy, CURLOPT_CLOSESOCKETFUNCTION, close);
    return code;
}

static inline CURLMcode
onward_multi_set_long(CURLM *multi, CURLMoption option, long value)
{
    return (curl_multi_setopt)(multi, option, value);
}

/* Sets CURLMOPT_SOCKETFUNCTION and CURLMOPT_TIMERFUNCTION. libcurl passes the object to both functions. */
static inline void
onward_multi_set_event_functions(CURLM *multi, int (*socket)(CURL *, curl_socket_t, int, void *, void *),
                                 int (*timer)(CURLM *, long, void *), void *object)
{
    (curl_multi_setopt)(multi, CURLMOPT_SOCKETFUNCTION, socket);
    (curl_multi_setopt)(multi, CURLMOPT_SOCKETDATA, object);
    (curl_multi_setopt)(multi, CURLMOPT_TIMERFUNCTION, timer);
    (curl_multi_setopt)(multi, CURLMOPT_TIMERDATA, object);
}

/* Returns the next finished handle and its result; NULL if there is none. */
static inline CURL *
onward_multi_done(CURLM *multi, CURLcode *code)
{
    int left;
    CURLMsg *message;
    while((message = curl_multi_info_read(multi, &left)))
        if(message->msg == CURLMSG_DONE) {
            *code = message->data.result;
            return message->easy_handle;
        }
    return NULL;
}

#endif
