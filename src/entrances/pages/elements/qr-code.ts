import type { Phrase } from '../../../platform/texts/text.ts';
import { type Html, html } from '../html.ts';

/** The dark and light squares of a QR code, row by row. */
export interface QrModules {
  readonly size: number;
  readonly data: ArrayLike<number>;
}

const quietZone = 4;

/** The modules of a QR code with an address. */
export async function qrModulesOf(uri: string): Promise<QrModules> {
  // At first use: most hubs are without second factors.
  const { create } = await import('qrcode');
  return create(uri).modules;
}

/** Draws a QR code as one path, so that no markup has to be taken on trust. */
export function qrCode({ size, data }: QrModules, label: Phrase): Html {
  const side = size + 2 * quietZone;
  let path = '';
  for (let index = 0; index < size * size; index += 1) {
    if (!data[index]) continue;
    path += `M${(index % size) + quietZone} ${Math.floor(index / size) + quietZone}h1v1h-1z`;
  }
  return html`<svg class="qr" viewBox="0 0 ${side} ${side}" role="img" aria-label="${label}" shape-rendering="crispEdges"><path fill="currentColor" d="${path}"/></svg>`;
}
