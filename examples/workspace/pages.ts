import type { Entry } from './folder.ts';

/** Where the pages are, and whose they are. */
export interface Place {
  /** Path of the workspace on the hub, ends in a slash. */
  readonly prefix: string;
  readonly userName: string;
}

/** Text as it may stand in a page. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The address of a file or folder below `files/`. */
export function fileUrl({ prefix }: Place, path: string): string {
  return `${prefix}files/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** A folder: what is in it, and how to add to it. */
export function folderPage(place: Place, path: string, entries: readonly Entry[]): string {
  const rows = entries.map((entry) => entryRow(place, path, entry)).join('\n');
  const url = escapeHtml(fileUrl(place, path));
  return page(
    place,
    path,
    `${entries.length === 0 ? '<p class="empty">This folder is empty. Begin with a note.</p>' : `<ul class="files">${rows}</ul>`}
<div class="add">
<form method="post" action="${url}"><label>New note or file<input name="name" required maxlength="100" placeholder="ideas.md" autocomplete="off"></label><button class="primary" name="action" value="new-file">Create</button></form>
<form method="post" action="${url}"><label>New folder<input name="name" required maxlength="100" autocomplete="off"></label><button name="action" value="new-folder">Create</button></form>
<form data-upload="${url}"><label>Upload<input type="file" name="file" multiple></label><button>Upload</button><output></output></form>
</div>`,
  );
}

/** A text, ready to be changed. */
export function textPage(place: Place, path: string, text: string, isSaved: boolean): string {
  const url = escapeHtml(fileUrl(place, path));
  return page(
    place,
    path,
    `<form method="post" action="${url}" class="editor">
<label class="hidden" for="text">Text of ${escapeHtml(path)}</label>
<textarea id="text" name="text" spellcheck="false" autofocus>${escapeHtml(`\n${text}`)}</textarea>
<p class="row"><button class="primary" name="action" value="save">Save</button>
<a class="button" href="${url}?download">Download</a>${isSaved ? '<span class="good" role="status">Saved.</span>' : ''}</p>
</form>`,
  );
}

/** A file that is no text. */
export function filePage(place: Place, path: string): string {
  return page(
    place,
    path,
    `<p>This file is not a text that can be changed here.</p><p><a class="button primary" href="${escapeHtml(fileUrl(place, path))}?download">Download</a></p>`,
  );
}

/** Asks before something is gone for good. */
export function deletePage(place: Place, path: string): string {
  return page(
    place,
    path,
    `<p>Delete <b>${escapeHtml(path)}</b>, with everything in it? This cannot be undone.</p>
<form method="post" action="${escapeHtml(fileUrl(place, path))}" class="row"><button class="danger" name="action" value="delete">Delete</button><a class="button" href="${escapeHtml(fileUrl(place, parentOf(path)))}">Keep it</a></form>`,
  );
}

/** What went wrong, in words. */
export function problemPage(place: Place, message: string): string {
  return page(
    place,
    '',
    `<p role="alert">${escapeHtml(message)}</p><p><a class="button" href="${escapeHtml(place.prefix)}">Back to your files</a></p>`,
  );
}

/** The folder that a path is in. */
export function parentOf(path: string): string {
  return path.split('/').slice(0, -1).join('/');
}

function entryRow(place: Place, folder: string, entry: Entry): string {
  const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
  const url = escapeHtml(fileUrl(place, path));
  const size = entry.isFolder ? 'Folder' : formatBytes(entry.bytes);
  const day = entry.changedAt.toISOString().slice(0, 16).replace('T', ' ');
  return `<li><a href="${url}"><span class="icon">${entry.isFolder ? '▸' : '·'}</span>${escapeHtml(entry.name)}</a><small>${size}</small><small><time datetime="${entry.changedAt.toISOString()}">${day}</time></small><a class="quiet" href="${url}?delete" aria-label="Delete ${escapeHtml(entry.name)}">Delete</a></li>`;
}

function page(place: Place, path: string, body: string): string {
  const { prefix, userName } = place;
  const parts = path === '' ? [] : path.split('/');
  const crumbs = parts.map((part, index) => {
    const url = escapeHtml(fileUrl(place, parts.slice(0, index + 1).join('/')));
    return ` / <a href="${url}">${escapeHtml(part)}</a>`;
  });
  const title = parts.at(-1) ?? 'Files';
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Workspace</title>
<link rel="stylesheet" href="${escapeHtml(prefix)}workspace.css"><script type="module" src="${escapeHtml(prefix)}upload.js"></script></head>
<body><header><a href="/hub/home">Hub</a><span>Workspace of ${escapeHtml(userName)}</span></header>
<main><h1><a href="${escapeHtml(fileUrl(place, ''))}">Files</a>${crumbs.join('')}</h1>
${body}
</main></body></html>`;
}

function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  return `${Number((bytes / 1024 ** power).toPrecision(3))} ${units[power]}`;
}
