/**
 * Heads of requests, line by line, that name two hosts: a proxy may choose what it opens by the one, and pass the
 * other on.
 */
export function requestsNamingBoth(
  path: string,
  { open, closed }: { readonly open: string; readonly closed: string },
): string[][] {
  const absolute = ['http', 'https', 'HTTP', 'ws'].flatMap((scheme) =>
    ['HTTP/1.1', 'HTTP/1.0'].flatMap((version) =>
      [closed, `${closed}:80`, `u@${closed}`, `${open}@${closed}`].map((authority) => [
        `GET ${scheme}://${authority}${path} ${version}`,
        `Host: ${open}`,
      ]),
    ),
  );
  const hosts = [
    `zzz,${open}`,
    `,${open}`,
    `_,${open}`,
    `${closed},${open}`,
    `${closed}, ${open}`,
    `${closed}:80,${open}`,
    `${closed}:80, ${open}`,
    `${closed}:,${open}`,
    `${closed};${open}`,
    `${closed} ${open}`,
    `${closed}:80@${open}`,
    `${open}@${closed}`,
    `${closed}/,${open}`,
    `${closed}#,${open}`,
    `${closed}?${open}`,
    `${closed}\\,${open}`,
    `${closed}.,${open}`,
    `${open},${closed}`,
    `${open}:80,${closed}`,
    `http://${open}`,
    '',
  ];
  const byHost = hosts.flatMap((host) => [
    [`GET ${path} HTTP/1.1`, `Host: ${host}`],
    [`GET ${path} HTTP/1.0`, `Host: ${host}`],
    [`GET http://${closed}${path} HTTP/1.1`, `Host: ${host}`],
  ]);
  return [
    ...absolute,
    ...byHost,
    [`GET ${path} HTTP/1.1`, `Host: ${closed}`, `Host: ${open}`],
    [`GET ${path} HTTP/1.1`, `Host: ${open}`, `Host: ${closed}`],
    [`GET ${path} HTTP/1.0`, `X-Forwarded-Host: ${open}`],
    [`GET http://${closed} HTTP/1.1`, `Host: ${open}`],
    [`GET http://${closed}?${path} HTTP/1.1`, `Host: ${open}`],
  ];
}
