/** Why a document gave no text. */
export type PdfFault = 'broken' | 'encrypted' | 'too long' | 'late' | 'memory';

/** What the thread answers: once when it has loaded the package, then a message for each document. */
export type FromPdf =
  | { readonly kind: 'opened' }
  | { readonly kind: 'notInstalled' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'fault'; readonly fault: PdfFault };
