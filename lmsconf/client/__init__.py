"""Speaks the API, and knows no manifest.

client     Client: one call, checked, sent, tried again where that is safe, decoded
crew       Crew: several clients side by side, the urgent request first
urgency    which request of many is next
reader     Reader: the core's `Api` over a crew; it cannot write
paging     listings read to their proven end
retry      Retry: what is tried again, and when
trace      Exchange: what was asked and answered, for a log
request, http, decode, verdict    the stations of one call: check, send, decode, judge
"""
