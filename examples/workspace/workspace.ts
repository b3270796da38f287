import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { FolderError, openFolder } from './folder.ts';
import {
  deletePage,
  filePage,
  fileUrl,
  folderPage,
  type Place,
  parentOf,
  problemPage,
  textPage,
} from './pages.ts';

// A person's files in the browser, behind the gateway: it lets in only whom the hub admits, says in
// X-Hub-User who that is, and refuses changes that another site asks for. So there is no login here.
const prefix = process.env['HUB_SERVICE_PREFIX'] ?? '/';
const folder = openFolder(process.cwd());
const largestForm = 4 * 1024 * 1024;
const assets = {
  'workspace.css': [
    'text/css; charset=utf-8',
    readFileSync(join(import.meta.dirname, 'workspace.css')),
  ],
  'upload.js': [
    'text/javascript; charset=utf-8',
    readFileSync(join(import.meta.dirname, 'upload.js')),
  ],
} as const;

const server = createServer((request, response) => {
  const place = {
    prefix,
    userName: decodeURIComponent(
      String(request.headers['x-hub-user'] ?? process.env['HUB_USER'] ?? ''),
    ),
  };
  answer(request, response, place).catch((error: unknown) => {
    const known = error instanceof FolderError ? error : fromSystem(error);
    if (known === undefined) console.error(error);
    if (response.headersSent) response.destroy();
    else {
      const { status, message } = known ?? {
        status: 500,
        message: 'That did not work. Try again.',
      };
      send(response, status, problemPage(place, message));
    }
  });
});

/** What the file system refuses for good; undefined for anything else. */
function fromSystem(error: unknown): FolderError | undefined {
  switch (error instanceof Error && 'code' in error && error.code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new FolderError(507, 'There is no room left. Delete something first.');
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return new FolderError(403, 'This may only be read.');
    default:
      return undefined;
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  place: Place,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://workspace.invalid');
  const below = pathname.startsWith(prefix) ? pathname.slice(prefix.length) : '';
  if (below in assets) {
    const [contentType, body] = assets[below as keyof typeof assets];
    response
      .writeHead(200, { 'content-type': contentType, 'cache-control': 'max-age=300' })
      .end(body);
    return;
  }
  if (below !== 'files' && !below.startsWith('files/')) {
    response.writeHead(302, { location: fileUrl(place, '') }).end();
    return;
  }
  const path = decodePath(below.slice('files/'.length));
  if (request.method === 'PUT') {
    await folder.write(path, request);
    response.writeHead(204).end();
  } else if (request.method === 'POST') {
    await change(response, place, path, await readForm(request));
  } else if (searchParams.has('download')) await download(response, path);
  else if (searchParams.has('delete')) send(response, 200, deletePage(place, path));
  else await show(response, place, path, searchParams.has('saved'));
}

async function show(
  response: ServerResponse,
  place: Place,
  path: string,
  isSaved: boolean,
): Promise<void> {
  if (await folder.isFolder(path)) {
    send(response, 200, folderPage(place, path, await folder.list(path)));
    return;
  }
  const content = await folder.readText(path);
  send(
    response,
    200,
    content === undefined ? filePage(place, path) : textPage(place, path, content, isSaved),
  );
}

async function change(
  response: ServerResponse,
  place: Place,
  path: string,
  form: URLSearchParams,
): Promise<void> {
  const name = (form.get('name') ?? '').trim();
  const below = path === '' ? name : `${path}/${name}`;
  const goTo = (target: string, query = '') =>
    void response.writeHead(303, { location: fileUrl(place, target) + query }).end();
  switch (form.get('action') ?? '') {
    case 'save':
      await folder.write(path, Readable.from([(form.get('text') ?? '').replaceAll('\r\n', '\n')]));
      return goTo(path, '?saved');
    case 'new-file':
      if (name.includes('/')) throw new FolderError(400, 'A name holds no slash.');
      if ((await folder.list(path)).some((entry) => entry.name === name)) return goTo(below);
      await folder.write(below, Readable.from(['']));
      return goTo(below);
    case 'new-folder':
      if (name.includes('/')) throw new FolderError(400, 'A name holds no slash.');
      await folder.makeFolder(below);
      return goTo(below);
    case 'delete':
      await folder.remove(path);
      return goTo(parentOf(path));
    default:
      throw new FolderError(400, 'The form does not say what to do.');
  }
}

async function download(response: ServerResponse, path: string): Promise<void> {
  const { bytes, stream } = await folder.download(path);
  const name = encodeURIComponent(path.split('/').at(-1) ?? 'file');
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': bytes,
    'content-disposition': `attachment; filename*=UTF-8''${name}`,
    'x-content-type-options': 'nosniff',
  });
  stream.pipe(response);
  stream.once('error', () => response.destroy());
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  if (Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY) > largestForm) {
    throw new FolderError(413, 'This is too long to be saved here. Upload it as a file.');
  }
  return new URLSearchParams(await text(request));
}

function decodePath(encoded: string): string {
  try {
    return encoded
      .split('/')
      .filter((part) => part !== '')
      .map(decodeURIComponent)
      .join('/');
  } catch {
    throw new FolderError(404, 'There is no such file.');
  }
}

function send(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  });
  response.end(html);
}

const [, , socket] = process.argv;
const { hostname, port } = new URL(process.env['HUB_SERVICE_URL'] ?? 'http://127.0.0.1:10103');
if (socket === undefined) server.listen(Number(port), hostname);
else server.listen(socket);
