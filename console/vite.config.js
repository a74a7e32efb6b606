import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const gateway = process.env['OSL_GATEWAY'] ?? 'http://127.0.0.1:8642';
const asked = ['/osl', '/oauth', '/admin', '/openapi.json', '/console/settings.json', '/console/demo-token'];

// biome-ignore lint/style/noDefaultExport: required by Vite.
export default defineConfig({
  base: '/console/',
  plugins: [react()],
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    // Avoid `data:` URLs, which the page's content security policy blocks.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1_500,
    modulePreload: { polyfill: false },
  },
  // `npm run dev -w osl-console` next to a running gateway: pages are rebuilt on each change.
  server: { proxy: Object.fromEntries(asked.map((path) => [path, gateway])) },
});
