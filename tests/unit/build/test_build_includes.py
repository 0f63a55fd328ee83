"""Which files a source may make the compiler read."""

import time

import pytest

from kerneltrial.build.includes import include_fault, known_header, source_fault

HEADERS = {"cuda_fp16.h", "cuda/std/cstdint", "team.h"}


def fault(text: str) -> str:
    return include_fault(text, HEADERS.__contains__)


@pytest.mark.parametrize(
    "text",
    [
        "#include <cuda_fp16.h>",
        '#include "team.h"',
        "  #  include <cuda_fp16.h> // halves",
        "%:include <cuda_fp16.h>",
        "#/* why */include/* not */<cuda_fp16.h>",
        "#inc\\\nlude <cuda_fp16.h>",
        '// #include "/etc/passwd"',
        '/* \n#include "/etc/passwd"\n*/',
        '// spliced \\\n#include "/etc/passwd"\n',
        'const char* s = "#include </etc/passwd>";',
        "int n = 1'000'000; // it's fine\n#include <cuda_fp16.h>",
        "char c = '\"'; char d = '\\''; /* \" */",
        '#define TEXT "a // b"\n#include "team.h"',
        "#define INCLUDE_ME 1\n#ifdef include\n#endif",
        "float x = 1.0e+5f, y = .5f;",
        "#include <cuda/std/cstdint>\r\nint x;\r\n",
        "#pragma unroll\nfor(;;);",
        'const char* s = R"x(a /* b)x";\n#include <cuda_fp16.h> // halves\n',
        '#if 0\ndon\'t\n#endif\n#include "team.h"',
    ],
)
def test_honest_sources_pass(text: str) -> None:
    assert fault(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        '#include "../secret.h"',
        "#include <stdio.h>",
        "#include_next <cuda_fp16.h>",
        '#embed "/etc/passwd"',
        '#import "team.h"',
        "#if __has_include(</etc/passwd>)\n#endif",
        "#if __has_embed(</etc/passwd>)\n#endif",
        "#define H </etc/passwd>\n#include H",
        "#include",
        '#inc\\\nlude "/etc/passwd"',
        '%:include "/etc/passwd"',
        '??=include "/etc/passwd"',
        '#/**/include/**/"/etc/passwd"',
        '/* a */ #include "/etc/passwd"',
        '/* a\n */ #include "/etc/passwd"',
        '\f#\vinclude "/etc/passwd"',
        '\r#include "/etc/passwd"',
        '// a \r#include "/etc/passwd"',
        '// a ??/\n#include "/etc/passwd"',
        '// a \\ \n#include "/etc/passwd"',
        "int n = 1'0; /* ' */\n#include \"/etc/passwd\"",
        'const char* s = R"(\n)"; /* )"\n#include "/etc/passwd"\n// */',
        'const char* s = R"x(" /* )x";\n#include "/etc/passwd"\n// */',
        '#if 0\ndon\'t /*\n#endif\n// */ #include "/etc/passwd"',
        '"an open quote\n#include "/etc/passwd"',
        '"an escaped quote\\" /*\n#include "/etc/passwd"\n// */',
        '#include "team.h\\\n/../../../etc/passwd"',
        'import "/etc/passwd";',
        "export import </etc/passwd>;",
        '// R"x" \n/* #include <cuda_fp16.h> */',
        '// R"x" \n#include "team.h??/\n/../../../etc/passwd"',
        '// R"x" \ninc??/\nlude "/etc/passwd"',
        '// R"x" \n#in\\ \nclude "/etc/passwd"',
        '/* an open comment\n#include "/etc/passwd"',
    ],
)
def test_tricks_are_refused(text: str) -> None:
    assert fault(text) != ""


@pytest.mark.parametrize(
    "text",
    [
        "#/*" * 170_000,
        'R"' + "#/*" * 170_000,
        'R"#' + "/**/" * 120_000,
        'R"' + "#/**//*" * 70_000,
        "'" * 500_000,
        "/" * 500_000,
        '"\\' * 250_000,
        "1'" * 250_000,
        "1e" * 250_000 + "+",
        " \t" * 250_000 + "#include",
        'R"' + "include " * 60_000,
        "#include " + "<" * 500_000,
        "\\\n" * 250_000,
    ],
)
def test_hostile_sources_take_no_time(text: str) -> None:
    start = time.monotonic()
    fault(text)
    assert time.monotonic() - start < 2


def test_the_fault_names_what_was_included() -> None:
    assert "'/etc/passwd'" in fault('#include "/etc/passwd"')
    assert "not a macro" in fault("#include HEADER")
    assert "#include_next is not allowed" in fault("#include_next <team.h>")


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.h", "a/../../b.h", "a\\b.h", "", "absent.h", "folder"])
def test_headers_stay_below_their_folder(name: str, tmp_path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.h").touch()
    (tmp_path / "inner" / "b.h").touch()
    (tmp_path / "inner" / "folder").mkdir()
    assert not known_header(name, [tmp_path / "inner"])
    assert known_header("b.h", [tmp_path / "inner"])
    assert known_header("inner/b.h", [tmp_path])


def test_sources_that_cannot_be_read() -> None:
    assert source_fault(b"int x;") == ""
    assert "at most 524288" in source_fault(b"x" * (512 * 1024 + 1))
    assert source_fault(b"x" * (512 * 1024)) == ""
    assert "NUL byte at offset 3" in source_fault(b"int\0")
    assert "not UTF-8" in source_fault(b"int \xff;")
