/** Escapes a value of a filter (RFC 4515 §3): whatever it holds, it stays one value. */
export function escapeFilterValue(value: string): string {
  return [...Buffer.from(value, 'utf8')]
    .map((byte) => {
      const isPlain = byte > 0x1f && byte < 0x7f && !'\\*()'.includes(String.fromCharCode(byte));
      return isPlain ? String.fromCharCode(byte) : `\\${byte.toString(16).padStart(2, '0')}`;
    })
    .join('');
}

/** Escapes a value of a distinguished name (RFC 4514 §2.4). */
export function escapeDnValue(value: string): string {
  return [...Buffer.from(value, 'utf8')]
    .map((byte, index, bytes) => {
      const sign = String.fromCharCode(byte);
      const isEdge = index === 0 || index === bytes.length - 1;
      const isSpecial = ',+"\\<>;=#'.includes(sign) || (isEdge && sign === ' ');
      const isPlain = byte > 0x1f && byte < 0x7f && !isSpecial;
      return isPlain ? sign : `\\${byte.toString(16).padStart(2, '0')}`;
    })
    .join('');
}
