/* SPDX-License-Identifier: MIT */
/* Messages that Celery 5.2.6 with kombu 5.2.4 wrote to Redis; recorded by MONITOR. Only the tickets of
 * replies to `celery inspect` are changed to those of sqmgr. */
#pragma once

#define CELERY_EVENT_ONLINE                                                                                  \
        "{\"body\": "                                                                                        \
        "\"eyJob3N0bmFtZSI6ICJvbmVAdm0iLCAidXRjb2Zmc2V0IjogMCwgInBpZCI6IDMxMTUyLCAiY2xvY2siOiAxLC"           \
        "AiZnJlcSI6IDIuMCwgImFjdGl2ZSI6IDAsICJwcm9jZXNzZWQiOiAwLCAibG9hZGF2ZyI6IFszLjc3LCAxLjUxLCAwLjZdLC"   \
        "Aic3dfaWRlbnQiOiAicHktY2VsZXJ5IiwgInN3X3ZlciI6ICI1LjIuNiIsICJzd19zeXMiOiAiTGludXgiLCAidGltZXN0YW"   \
        "1wIjogMTc5NTc0Nzc1Ni4xNzkyNTMsICJ0eXBlIjogIndvcmtlci1vbmxpbmUifQ==\", \"content-encoding\": "       \
        "\"utf-8\""                                                                                          \
        ", \"content-type\": \"application/json\", \"headers\": {\"hostname\": \"one@vm\"}, "                \
        "\"properties\": {\"deliver"                                                                         \
        "y_mode\": 1, \"delivery_info\": {\"exchange\": \"celeryev\", \"routing_key\": \"worker.online\"}, " \
        "\"priority"                                                                                         \
        "\": 0, \"body_encoding\": \"base64\", \"delivery_tag\": \"385979a2-91ee-4ff3-9347-a43e8d8b095e\"}}"

#define CELERY_EVENT_HEARTBEAT                                                                               \
        "{\"body\": "                                                                                        \
        "\"eyJob3N0bmFtZSI6ICJvbmVAdm0iLCAidXRjb2Zmc2V0IjogMCwgInBpZCI6IDMxMTUyLCAiY2xvY2siOiAyMC"           \
        "wgImZyZXEiOiAyLjAsICJhY3RpdmUiOiAyLCAicHJvY2Vzc2VkIjogMiwgImxvYWRhdmciOiBbNC4wMywgMS43MiwgMC42OV"   \
        "0sICJzd19pZGVudCI6ICJweS1jZWxlcnkiLCAic3dfdmVyIjogIjUuMi42IiwgInN3X3N5cyI6ICJMaW51eCIsICJ0aW1lc3"   \
        "RhbXAiOiAxNzk1NzQ3Nzc2LjIwODI3OTgsICJ0eXBlIjogIndvcmtlci1oZWFydGJlYXQifQ==\", "                     \
        "\"content-encoding\":"                                                                              \
        " \"utf-8\", \"content-type\": \"application/json\", \"headers\": {\"hostname\": \"one@vm\"}, "      \
        "\"properties\": {"                                                                                  \
        "\"delivery_mode\": 1, \"delivery_info\": {\"exchange\": \"celeryev\", \"routing_key\": "            \
        "\"worker.heartbeat\"}"                                                                              \
        ", \"priority\": 0, \"body_encoding\": \"base64\", \"delivery_tag\": "                               \
        "\"65ec078a-ec61-44e1-93f5-db8f8fbaf6a"                                                              \
        "5\"}}"

#define CELERY_REPLY_ACTIVE                                                                                  \
        "{\"body\": "                                                                                        \
        "\"eyJvbmVAdm0iOiBbeyJpZCI6ICI1ZDgzNGFmNS1iOTliLTQ5NzgtYjZiMi00OGZjNjkzZjM4ZTkiLCAibmFtZS"           \
        "I6ICJjYXBwLnNsb3ciLCAiYXJncyI6IFs4XSwgImt3YXJncyI6IHt9LCAidHlwZSI6ICJjYXBwLnNsb3ciLCAiaG9zdG5hbW"   \
        "UiOiAib25lQHZtIiwgInRpbWVfc3RhcnQiOiAxNzk1NzQ3Nzc1LjI5Njk1OTksICJhY2tub3dsZWRnZWQiOiB0cnVlLCAiZG"   \
        "VsaXZlcnlfaW5mbyI6IHsiZXhjaGFuZ2UiOiAiIiwgInJvdXRpbmdfa2V5IjogImNlbGVyeSIsICJwcmlvcml0eSI6IDAsIC"   \
        "JyZWRlbGl2ZXJlZCI6IG51bGx9LCAid29ya2VyX3BpZCI6IDMxNzM0fSwgeyJpZCI6ICI5YmZlMDRjZi1lNDU4LTQzNjAtOG"   \
        "IxMi00MTIzMTdmYzQyZDgiLCAibmFtZSI6ICJjYXBwLnNsb3ciLCAiYXJncyI6IFs4XSwgImt3YXJncyI6IHt9LCAidHlwZS"   \
        "I6ICJjYXBwLnNsb3ciLCAiaG9zdG5hbWUiOiAib25lQHZtIiwgInRpbWVfc3RhcnQiOiAxNzk1NzQ3Nzc1LjI5Njg0NDIsIC"   \
        "JhY2tub3dsZWRnZWQiOiB0cnVlLCAiZGVsaXZlcnlfaW5mbyI6IHsiZXhjaGFuZ2UiOiAiIiwgInJvdXRpbmdfa2V5IjogIm"   \
        "NlbGVyeSIsICJwcmlvcml0eSI6IDAsICJyZWRlbGl2ZXJlZCI6IG51bGx9LCAid29ya2VyX3BpZCI6IDMxNzg3fV19\", \"co" \
        "ntent-encoding\": \"utf-8\", \"content-type\": \"application/json\", \"headers\": {\"ticket\": "    \
        "\"active-12\","                                                                                     \
        " \"clock\": 3}, \"properties\": {\"delivery_mode\": 1, \"delivery_info\": {\"exchange\": "          \
        "\"reply.celery.pid"                                                                                 \
        "box\", \"routing_key\": \"a5693675-fb6f-3c4a-af6c-237c28757d58\"}, \"priority\": 0, "               \
        "\"body_encoding\": \"b"                                                                             \
        "ase64\", \"delivery_tag\": \"01016433-ae30-41e5-b2e3-fd67e0e08fc8\"}}"

#define CELERY_REPLY_RESERVED                                                                                \
        "{\"body\": "                                                                                        \
        "\"eyJvbmVAdm0iOiBbeyJpZCI6ICIyODkxNmE2Ny1kYmQ1LTRkNGQtYThlYy1iOGUzYTkyOGI2NzkiLCAibmFtZS"           \
        "I6ICJjYXBwLnNsb3ciLCAiYXJncyI6IFs4XSwgImt3YXJncyI6IHt9LCAidHlwZSI6ICJjYXBwLnNsb3ciLCAiaG9zdG5hbW"   \
        "UiOiAib25lQHZtIiwgInRpbWVfc3RhcnQiOiBudWxsLCAiYWNrbm93bGVkZ2VkIjogZmFsc2UsICJkZWxpdmVyeV9pbmZvIj"   \
        "ogeyJleGNoYW5nZSI6ICIiLCAicm91dGluZ19rZXkiOiAiY2VsZXJ5IiwgInByaW9yaXR5IjogMCwgInJlZGVsaXZlcmVkIj"   \
        "ogbnVsbH0sICJ3b3JrZXJfcGlkIjogbnVsbH0sIHsiaWQiOiAiNzEzZmUyN2EtODU1ZS00OGQ1LTg3YWMtNDAzNzFlMzZjMz"   \
        "E5IiwgIm5hbWUiOiAiY2FwcC5zbG93IiwgImFyZ3MiOiBbOF0sICJrd2FyZ3MiOiB7fSwgInR5cGUiOiAiY2FwcC5zbG93Ii"   \
        "wgImhvc3RuYW1lIjogIm9uZUB2bSIsICJ0aW1lX3N0YXJ0IjogbnVsbCwgImFja25vd2xlZGdlZCI6IGZhbHNlLCAiZGVsaX"   \
        "ZlcnlfaW5mbyI6IHsiZXhjaGFuZ2UiOiAiIiwgInJvdXRpbmdfa2V5IjogImNlbGVyeSIsICJwcmlvcml0eSI6IDAsICJyZW"   \
        "RlbGl2ZXJlZCI6IG51bGx9LCAid29ya2VyX3BpZCI6IG51bGx9LCB7ImlkIjogImQxYTYwNWYzLTc4MjItNDkzMC1hNzAwLT"   \
        "I1MGI0N2E4YjRiZiIsICJuYW1lIjogImNhcHAubGF0ZSIsICJhcmdzIjogWzNdLCAia3dhcmdzIjoge30sICJ0eXBlIjogIm"   \
        "NhcHAubGF0ZSIsICJob3N0bmFtZSI6ICJvbmVAdm0iLCAidGltZV9zdGFydCI6IG51bGwsICJhY2tub3dsZWRnZWQiOiBmYW"   \
        "xzZSwgImRlbGl2ZXJ5X2luZm8iOiB7ImV4Y2hhbmdlIjogIiIsICJyb3V0aW5nX2tleSI6ICJjZWxlcnkiLCAicHJpb3JpdH"   \
        "kiOiAwLCAicmVkZWxpdmVyZWQiOiBudWxsfSwgIndvcmtlcl9waWQiOiBudWxsfV19\", \"content-encoding\": "       \
        "\"utf-8\""                                                                                          \
        ", \"content-type\": \"application/json\", \"headers\": {\"ticket\": \"reserved-13\", \"clock\": "   \
        "5}, \"propert"                                                                                      \
        "ies\": {\"delivery_mode\": 1, \"delivery_info\": {\"exchange\": \"reply.celery.pidbox\", "          \
        "\"routing_key\": \""                                                                                \
        "b98dd246-22fd-38ae-bf5a-1f498ecccd1f\"}, \"priority\": 0, \"body_encoding\": \"base64\", "          \
        "\"delivery_tag\""                                                                                   \
        ": \"252a4c1a-a44e-46ea-9be4-0982783a1b26\"}}"

#define CELERY_REPLY_QUEUES                                                                                  \
        "{\"body\": "                                                                                        \
        "\"eyJvbmVAdm0iOiBbeyJuYW1lIjogImNlbGVyeSIsICJleGNoYW5nZSI6IHsibmFtZSI6ICJjZWxlcnkiLCAidH"           \
        "lwZSI6ICJkaXJlY3QiLCAiYXJndW1lbnRzIjogbnVsbCwgImR1cmFibGUiOiB0cnVlLCAicGFzc2l2ZSI6IGZhbHNlLCAiYX"   \
        "V0b19kZWxldGUiOiBmYWxzZSwgImRlbGl2ZXJ5X21vZGUiOiBudWxsLCAibm9fZGVjbGFyZSI6IGZhbHNlfSwgInJvdXRpbm"   \
        "dfa2V5IjogImNlbGVyeSIsICJxdWV1ZV9hcmd1bWVudHMiOiBudWxsLCAiYmluZGluZ19hcmd1bWVudHMiOiBudWxsLCAiY2"   \
        "9uc3VtZXJfYXJndW1lbnRzIjogbnVsbCwgImR1cmFibGUiOiB0cnVlLCAiZXhjbHVzaXZlIjogZmFsc2UsICJhdXRvX2RlbG"   \
        "V0ZSI6IGZhbHNlLCAibm9fYWNrIjogZmFsc2UsICJhbGlhcyI6IG51bGwsICJiaW5kaW5ncyI6IFtdLCAibm9fZGVjbGFyZS"   \
        "I6IG51bGwsICJleHBpcmVzIjogbnVsbCwgIm1lc3NhZ2VfdHRsIjogbnVsbCwgIm1heF9sZW5ndGgiOiBudWxsLCAibWF4X2"   \
        "xlbmd0aF9ieXRlcyI6IG51bGwsICJtYXhfcHJpb3JpdHkiOiBudWxsfV19\", \"content-encoding\": \"utf-8\", "    \
        "\"conte"                                                                                            \
        "nt-type\": \"application/json\", \"headers\": {\"ticket\": \"active_queues-7\", \"clock\": 14}, "   \
        "\"properties"                                                                                       \
        "\": {\"delivery_mode\": 1, \"delivery_info\": {\"exchange\": \"\", \"routing_key\": "               \
        "\"sqmgr:reply:x\"}, \"prio"                                                                         \
        "rity\": 0, \"body_encoding\": \"base64\", \"delivery_tag\": "                                       \
        "\"a28149e5-733e-4715-bba4-2858f80db634\"}}"

#define CELERY_REPLY_CANCELLED                                                                               \
        "{\"body\": \"eyJvbmVAdm0iOiB7Im9rIjogIm5vIGxvbmdlciBjb25zdW1pbmcgZnJvbSBjZWxlcnkifX0=\", "          \
        "\"content-en"                                                                                       \
        "coding\": \"utf-8\", \"content-type\": \"application/json\", \"headers\": {\"ticket\": "            \
        "\"cancel_consumer-8\","                                                                             \
        " \"clock\": 16}, \"properties\": {\"delivery_mode\": 1, \"delivery_info\": {\"exchange\": \"\", "   \
        "\"routing_key"                                                                                      \
        "\": \"sqmgr:reply:x\"}, \"priority\": 0, \"body_encoding\": \"base64\", \"delivery_tag\": "         \
        "\"064cc38f-0c03-46"                                                                                 \
        "e2-b8eb-5f8599f2df5d\"}}"

#define CELERY_REPLY_ERROR                                                                                   \
        "{\"body\": \"eyJvbmVAdm0iOiB7ImVycm9yIjogIktleUVycm9yKCdub3N1Y2gnKSJ9fQ==\", "                      \
        "\"content-encoding\": \"ut"                                                                         \
        "f-8\", \"content-type\": \"application/json\", \"headers\": {\"ticket\": \"active-9\", \"clock\": " \
        "20}, \"prope"                                                                                       \
        "rties\": {\"delivery_mode\": 1, \"delivery_info\": {\"exchange\": \"\", \"routing_key\": "          \
        "\"sqmgr:reply:x\"}, "                                                                               \
        "\"priority\": 0, \"body_encoding\": \"base64\", \"delivery_tag\": "                                 \
        "\"25377421-b4fe-460f-b1f3-0aacdc99445c\""                                                           \
        "}}"

#define CELERY_EVENT_OFFLINE                                                                                 \
        "{\"body\": "                                                                                        \
        "\"eyJob3N0bmFtZSI6ICJvbmVAdm0iLCAidXRjb2Zmc2V0IjogMCwgInBpZCI6IDMxMTUyLCAiY2xvY2siOiAzNz"           \
        "gsICJmcmVxIjogMi4wLCAiYWN0aXZlIjogMCwgInByb2Nlc3NlZCI6IDYsICJsb2FkYXZnIjogWzQuMzIsIDMuMjQsIDEuNj"   \
        "ZdLCAic3dfaWRlbnQiOiAicHktY2VsZXJ5IiwgInN3X3ZlciI6ICI1LjIuNiIsICJzd19zeXMiOiAiTGludXgiLCAidGltZX"   \
        "N0YW1wIjogMTc5NTc0ODEyMS41MTk3NzEzLCAidHlwZSI6ICJ3b3JrZXItb2ZmbGluZSJ9\", \"content-encoding\": "   \
        "\"ut"                                                                                               \
        "f-8\", \"content-type\": \"application/json\", \"headers\": {\"hostname\": \"one@vm\"}, "           \
        "\"properties\": {\"del"                                                                             \
        "ivery_mode\": 1, \"delivery_info\": {\"exchange\": \"celeryev\", \"routing_key\": "                 \
        "\"worker.offline\"}, \"pri"                                                                         \
        "ority\": 0, \"body_encoding\": \"base64\", \"delivery_tag\": "                                      \
        "\"6078488b-58a2-4c76-a5d6-09a4b350c83b\"}}"

/* Celery 5.5.2 with kombu 5.5.3 differs in two values: the version, and `redelivered`, which is a boolean. */
#define CELERY_55_EVENT_HEARTBEAT                                                                            \
        "{\"body\": \"eyJob3N0bmFtZSI6ICJjZWxlcnlAdm0iLCAidXRjb2Zmc2V0IjogMCwgInBpZCI6IDE4MzY5LCAiY2xvY2s"   \
        "iOiAyLCAiZnJlcSI6IDIuMCwgImFjdGl2ZSI6IDIsICJwcm9jZXNzZWQiOiAyLCAibG9hZGF2ZyI6IFsxMi43LCA3LjMyLCA"   \
        "zLjY1XSwgInN3X2lkZW50IjogInB5LWNlbGVyeSIsICJzd192ZXIiOiAiNS41LjIiLCAic3dfc3lzIjogIkxpbnV4IiwgInR"   \
        "pbWVzdGFtcCI6IDE3OTU3NDg0MDQuMDE3MjMyNywgInR5cGUiOiAid29ya2VyLWhlYXJ0YmVhdCJ9\", \"content-encod"   \
        "ing\": \"utf-8\", \"content-type\": \"application/json\", \"headers\": {\"hostname\": \"celery@v"   \
        "m\"}, \"properties\": {\"delivery_mode\": 1, \"delivery_info\": {\"exchange\": \"celeryev\", \"r"   \
        "outing_key\": \"worker.heartbeat\"}, \"priority\": 0, \"body_encoding\": \"base64\", \"delivery_"   \
        "tag\": \"ea93c42e-7fac-4bb2-8d47-1f364f1579e0\"}}"

#define CELERY_55_REPLY_ACTIVE                                                                               \
        "{\"body\": \"eyJjZWxlcnlAdm0iOiBbeyJpZCI6ICIwODNjYjYyZS1lODkzLTRiMjItODI4Ny01NmQ4NWMzNjhhZDgiLCA"   \
        "ibmFtZSI6ICJ0YXNrcy5zbG93IiwgImFyZ3MiOiBbNl0sICJrd2FyZ3MiOiB7InNlY3JldCI6ICJ4In0sICJ0eXBlIjogInR"   \
        "hc2tzLnNsb3ciLCAiaG9zdG5hbWUiOiAiY2VsZXJ5QHZtIiwgInRpbWVfc3RhcnQiOiAxNzk1NzQ4NDAyLjQzNTkyOSwgImF"   \
        "ja25vd2xlZGdlZCI6IHRydWUsICJkZWxpdmVyeV9pbmZvIjogeyJleGNoYW5nZSI6ICIiLCAicm91dGluZ19rZXkiOiAiY2V"   \
        "sZXJ5IiwgInByaW9yaXR5IjogMCwgInJlZGVsaXZlcmVkIjogZmFsc2V9LCAid29ya2VyX3BpZCI6IDE4NTY5fSwgeyJpZCI"   \
        "6ICIzYTZlNzY2Yi1jYmM4LTRhNTgtYmNjYS00ZjMzNTVlNjc1NmEiLCAibmFtZSI6ICJ0YXNrcy5zbG93IiwgImFyZ3MiOiB"   \
        "bNl0sICJrd2FyZ3MiOiB7InNlY3JldCI6ICJ4In0sICJ0eXBlIjogInRhc2tzLnNsb3ciLCAiaG9zdG5hbWUiOiAiY2VsZXJ"   \
        "5QHZtIiwgInRpbWVfc3RhcnQiOiAxNzk1NzQ4NDAyLjQzNTQ1MjIsICJhY2tub3dsZWRnZWQiOiB0cnVlLCAiZGVsaXZlcnl"   \
        "faW5mbyI6IHsiZXhjaGFuZ2UiOiAiIiwgInJvdXRpbmdfa2V5IjogImNlbGVyeSIsICJwcmlvcml0eSI6IDAsICJyZWRlbGl"   \
        "2ZXJlZCI6IGZhbHNlfSwgIndvcmtlcl9waWQiOiAxODU1Mn1dfQ==\", \"content-encoding\": \"utf-8\", \"cont"   \
        "ent-type\": \"application/json\", \"headers\": {\"ticket\": \"active-12\", \"clock\": 3}, \"prop"   \
        "erties\": {\"delivery_mode\": 1, \"delivery_info\": {\"exchange\": \"reply.celery.pidbox\", \"ro"   \
        "uting_key\": \"fbd4ef7e-26dc-33a8-a609-c0bf4bb893d8\"}, \"priority\": 0, \"body_encoding\": \"ba"   \
        "se64\", \"delivery_tag\": \"8390e74a-f607-4ea3-9943-3659f54e33e4\"}}"

#define CELERY_55_REPLY_RESERVED                                                                             \
        "{\"body\": \"eyJjZWxlcnlAdm0iOiBbeyJpZCI6ICIyNDIzYjdhYS00NWM4LTQ5NGMtYTZlZS1mMzE5YjA2YjRmY2IiLCA"   \
        "ibmFtZSI6ICJ0YXNrcy5zbG93IiwgImFyZ3MiOiBbNl0sICJrd2FyZ3MiOiB7InNlY3JldCI6ICJ4In0sICJ0eXBlIjogInR"   \
        "hc2tzLnNsb3ciLCAiaG9zdG5hbWUiOiAiY2VsZXJ5QHZtIiwgInRpbWVfc3RhcnQiOiBudWxsLCAiYWNrbm93bGVkZ2VkIjo"   \
        "gZmFsc2UsICJkZWxpdmVyeV9pbmZvIjogeyJleGNoYW5nZSI6ICIiLCAicm91dGluZ19rZXkiOiAiY2VsZXJ5IiwgInByaW9"   \
        "yaXR5IjogMCwgInJlZGVsaXZlcmVkIjogZmFsc2V9LCAid29ya2VyX3BpZCI6IG51bGx9LCB7ImlkIjogIjVkZDc1ZTVmLTY"   \
        "5NDItNGJlMS1hMDgwLTg0MmI5MTJkYTAxZSIsICJuYW1lIjogInRhc2tzLnNsb3ciLCAiYXJncyI6IFs2XSwgImt3YXJncyI"   \
        "6IHsic2VjcmV0IjogIngifSwgInR5cGUiOiAidGFza3Muc2xvdyIsICJob3N0bmFtZSI6ICJjZWxlcnlAdm0iLCAidGltZV9"   \
        "zdGFydCI6IG51bGwsICJhY2tub3dsZWRnZWQiOiBmYWxzZSwgImRlbGl2ZXJ5X2luZm8iOiB7ImV4Y2hhbmdlIjogIiIsICJ"   \
        "yb3V0aW5nX2tleSI6ICJjZWxlcnkiLCAicHJpb3JpdHkiOiAwLCAicmVkZWxpdmVyZWQiOiBmYWxzZX0sICJ3b3JrZXJfcGl"   \
        "kIjogbnVsbH1dfQ==\", \"content-encoding\": \"utf-8\", \"content-type\": \"application/json\", \""   \
        "headers\": {\"ticket\": \"reserved-13\", \"clock\": 5}, \"properties\": {\"delivery_mode\": 1, "    \
        "\"delivery_info\": {\"exchange\": \"reply.celery.pidbox\", \"routing_key\": \"073fd898-c045-333c"   \
        "-9317-228267126911\"}, \"priority\": 0, \"body_encoding\": \"base64\", \"delivery_tag\": \"9dc62"   \
        "5cb-f42d-42ee-a5f0-066d50269214\"}}"
