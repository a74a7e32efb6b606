import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

const gateway = process.env['OSL_GATEWAY'] ?? 'http://127.0.0.1:8642';
const asked = ['/osl', '/oauth', '/admin', '/openapi.json', '/console/settings.json', '/console/demo-token'];

// biome-ignore lint/style/noDefaultExport: Vite takes it so.
export default defineConfig({
  base: '/console/',
  plugins: [react()],
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    // No `data:` URLs, which the policy of the page refuses.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1_500,
    modulePreload: { polyfill: false },
  },
  // `npm run dev -w osl-console` beside a gateway: pages that are made anew with each change.
  server: { proxy: Object.fromEntries(asked.map((path) => [path, gateway])) },
});
