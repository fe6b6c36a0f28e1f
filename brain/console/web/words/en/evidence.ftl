### An evidence bundle, open in the page.

evidence-of = From
evidence-download = Download the bundle
evidence-cut = Not everything is listed:
evidence-left-out = { $n ->
    [one] 1 member is a link, a device or the like, and is left out.
   *[other] { $n } members are links, devices or the like, and are left out.
  }
evidence-files = Files of the bundle
evidence-find = Find a file
evidence-choose = Choose a file to read it here.
evidence-empty = There is no file in it.
evidence-more = and { $n } more: narrow the names
evidence-text = Text of the file
evidence-binary = This is no text: download it to look at it.
evidence-first = The first { $shown } of { $all }. The download has all of it.
evidence-no-text = no text
evidence-save = Download
evidence-count = { $n ->
    [one] 1 file
   *[other] { $n } files
  }
