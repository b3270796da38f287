import { readText } from '../files/read-file.ts';

/** What an image is by its content, whatever its file is called. */
export interface Image {
  readonly type: ImageType;
  readonly contentType: string;
  readonly width: number;
  readonly height: number;
}

export type ImageType = 'svg' | 'png' | 'jpg' | 'webp' | 'ico';

const contentTypes: Readonly<Record<ImageType, string>> = {
  svg: 'image/svg+xml',
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  ico: 'image/x-icon',
};

const namesOfTypes: Readonly<Record<ImageType, string>> = {
  svg: 'SVG',
  png: 'PNG',
  jpg: 'JPEG',
  webp: 'WebP',
  ico: 'ICO',
};

/** Reads type and size of an image; a text says what is wrong with it. */
export async function readImage(
  body: Buffer,
  allowed: readonly ImageType[],
): Promise<Image | string> {
  const names = allowed.map((type) => namesOfTypes[type]);
  const wanted = `use ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
  const { imageSize } = await import('image-size');
  let found: ReturnType<typeof imageSize>;
  try {
    found = imageSize(body);
  } catch {
    const isSvg = isSvgDocument(body);
    if (isSvg) return 'is SVG without a size: give its <svg> a viewBox, or width and height';
    return `is not an image that browsers show; ${wanted}`;
  }
  const { width, height } = found;
  const type = allowed.find((each) => each === found.type);
  if (type === undefined) return `is an image of another type (${found.type}); ${wanted}`;
  if (!(width > 0 && height > 0)) return 'has no width or no height';
  if (!isWhole(type, body)) return 'is cut off or damaged; export it again';
  return { type, contentType: contentTypes[type], width, height };
}

/** Whether the end of the image is there; its size stands at its beginning. */
function isWhole(type: ImageType, body: Buffer): boolean {
  switch (type) {
    case 'svg':
      return isSvgDocument(body);
    case 'png':
      return body.lastIndexOf('IEND') > 0;
    case 'jpg':
      return body.lastIndexOf(Buffer.from([0xff, 0xd9])) > 0;
    case 'webp':
      return body.readUInt32LE(4) + 8 <= body.length;
    case 'ico':
      return true;
  }
}

/** An `<svg>` somewhere in another document, such as a web page, does not make it one. */
function isSvgDocument(body: Buffer): boolean {
  const text = readText(body)?.trim() ?? '';
  const root = text.replace(
    /^(?:\s|<\?[^>]*\?>|<!--(?:[^-]|-(?!->))*-->|<!DOCTYPE[^>[]*(?:\[[^\]]*\])?[^>]*>)+/i,
    '',
  );
  return /^<svg[\s>]/.test(root) && /<\/svg>\s*(?:<!--(?:[^-]|-(?!->))*-->\s*)*$/.test(root);
}
