"""Chat templates and small expressions with what Jinja 2 makes of them, set up as Hugging Face's transformers does
(trim_blocks, lstrip_blocks, loop controls, its own tojson). Writes chat-templates/cases.json. Needs jinja2.

    python tests/reference/make_chat_templates.py [FOLDER OF *.jinja]   (a folder: compares nothing, only adds its templates
                                                                         to /tmp/chat_cases.json, for a look by hand)
"""
import json
import os
import pathlib
import sys
import time

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1700000000  # 14 November 2023, 22:13:20 UTC
os.environ["TZ"] = "UTC"
time.tzset()


class Generation(Extension):
    """{% generation %} … {% endgeneration %}: what it holds, as it is."""
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: time.strftime(form, time.localtime(NOW))
    return env


# In the manner of the published ones: marks before and behind each turn, one style a family.
STYLES = {
    "chatml": """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful assistant.<|im_end|>
' }}{% endif %}{{ '<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "headers": """{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today: " + strftime_now("%d %b %Y") + "\\n\\n" + system + "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "instructions": """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}{% set system = false %}{% endif %}{% for message in rest %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must take turns: user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system != false %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""",
    "turns": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}""",
    "thinking": """{%- if tools %}
    {{- 'tools: ' + tools | tojson }}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1, open=true) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.open and message.role == "user" and message.content is string and not(message.content.startswith('<r>') and message.content.endswith('</r>')) %}
        {%- set ns.open = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set thought = '' %}
        {%- if message.thought is defined and message.thought is not none %}
            {%- set thought = message.thought %}
        {%- elif '</think>' in message.content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
            {%- set thought = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
""",
    "macros": """{% macro turn(role, text, end='|') %}
[{{ role | upper }}] {{ text }}{{ end }}
{% endmacro %}
{# a comment
   of two lines #}
{% for m in messages if m.role != 'system' %}
  {% if loop.index > 3 %}{% break %}{% endif %}
  {% if not m.content.strip() %}{% continue %}{% endif %}
{{ turn(m.role, m['content'] | indent(2), end=eos_token if loop.last else '\\n') }}
{% else %}
nobody spoke
{% endfor %}
{% generation %}done{% endgeneration %}
""",
}

CONVERSATIONS = [
    [("user", "Hi there")],
    [("system", "  You are kind. "), ("user", "Wer bist du?\nÜber alles 你好 \"q\" 'x' <b>")],
    [("user", "One"), ("assistant", "<think>\nhm\n</think>\n\nTwo "), ("user", " Four ")],
    [("system", "S"), ("user", "One"), ("assistant", "Two"), ("user", "Three"), ("assistant", "Four")],
    [("assistant", "first"), ("user", "<r>x</r>")],
    [("user", "a"), ("user", "  ")],
]

EXPRESSIONS = r"""
{{ 1 + 2 * 3 ** 2 }}|{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 7 / 2 }}|{{ 7.0 // 2 }}|{{ 2 ** -1 }}|{{ 10 % 4 }}
{{ 1.0 }}|{{ 0.1 + 0.2 }}|{{ 100000.0 * 10 }}|{{ 3 | float }}|{{ '3.7' | int }}|{{ 'x' | int(5) }}|{{ 2.5 | round }}|{{ 2.567 | round(1) }}
{{ 1 < 2 < 3 }}|{{ 1 < 3 < 2 }}|{{ 'a' in 'cat' }}|{{ 'b' not in ['a'] }}|{{ not 1 == 2 }}|{{ 1 == 1.0 }}|{{ true == 1 }}
{{ 'a' ~ 1 ~ none ~ true ~ undefined_name }}|{{ 'ab' * 3 }}|{{ [1, 'a', none, 2.5, true] }}|{{ {'a': [1, {'b': 'c'}]} }}
{{ "it's" }}|{{ ["it's", 'say "x"', 'both \' "', 'line\n', '\t\\'] }}|{{ 'a' 'b' "c" }}
{{ 'x' if 1 > 2 else 'y' }}|{{ 'x' if 1 > 2 }}|{{ none or 'z' }}|{{ 0 and 1 }}|{{ '' or [] or 'w' }}
{{ [1,2,3][-1] }}|{{ 'häuser'[1] }}|{{ 'häuser'[1:4] }}|{{ [1,2,3,4,5][::-2] }}|{{ 'abc'[::-1] }}|{{ [1,2,3][:-1] }}|{{ [1,2,3][5:] }}
{{ {'a': 1}.a }}|{{ {'a': 1}['a'] }}|{{ {'a': 1}.get('b', 7) }}|{{ {'a': 1}.get('b') }}|{{ {'items': 3}['items'] }}
{{ {'a': 1, 'b': 2}.items() | map('last') | list }}|{{ {'b': 1, 'a': 2} | dictsort | map('first') | list }}|{{ {'a': 1}.keys() | list }}|{{ {'a': 1, 'b': 2}.values() | join(',') }}
{{ ' x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xxaxx'.lstrip('x') }}|{{ 'abab'.rstrip('b') }}|{{ 'a,b,,c'.split(',') }}|{{ ' a  b c '.split() }}|{{ 'a b c d'.split(' ', 2) }}|{{ 'a.b.c'.rsplit('.', 1) }}
{{ 'abc'.startswith('ab') }}|{{ 'abc'.endswith(('x', 'c')) }}|{{ 'aXbX'.replace('X', '--') }}|{{ 'aaaa'.replace('a', 'b', 2) }}|{{ 'ab'.replace('', '.') }}|{{ 'banana'.count('an') }}|{{ 'banana'.find('nan') }}|{{ 'x'.find('y') }}
{{ 'strasse ÄB'.upper() }}|{{ 'ÄB Ö'.lower() }}|{{ 'hello wORLD'.title() }}|{{ 'hELLO wORLD' | capitalize }}|{{ "they're bill's" | title }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\nb'.splitlines() }}|{{ '<a href="x">' | e }}
{{ [3,1,2] | sort }}|{{ ['b','A','c'] | sort }}|{{ ['b','A','c'] | sort(case_sensitive=true) }}|{{ [3,1,2] | sort(reverse=true) }}|{{ [1,1,2] | unique | list }}|{{ [1,2,3] | sum }}|{{ [1,2,3] | max }}|{{ [] | first }}|{{ [1,2] | last }}|{{ 'abc' | reverse }}|{{ [1,2] | reverse | list }}
{{ [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}] | map(attribute='b') | join('-') }}|{{ ['a', 'b'] | map('upper') | list }}|{{ [{'a': 1}, {'b': 2}] | selectattr('a', 'defined') | list }}|{{ [{'a': 1}, {'a': 2}] | rejectattr('a', 'equalto', 1) | list }}|{{ [1, 2, 3, 4] | select('even') | list }}|{{ [0, 1, '', 'a'] | select | list }}
{{ 'é"\\\n' | tojson }}|{{ {'a': [1, 2.5, none, true], 'b': {}} | tojson }}|{{ {'a': [1, {'c': []}]} | tojson(indent=2) }}|{{ [] | tojson(indent=4) }}
{{ x is defined }}|{{ none is none }}|{{ 'a' is string }}|{{ 1 is number }}|{{ {} is mapping }}|{{ [] is iterable }}|{{ 'a' is iterable }}|{{ 3 is odd }}|{{ 6 is divisibleby 3 }}|{{ 1 is not none }}|{{ true is boolean }}|{{ 1 is integer }}|{{ 1.5 is float }}|{{ 'a' is in ['a'] }}|{{ 2 is eq 2 }}|{{ true is true }}|{{ 1 is true }}
{{ x | default('d') }}|{{ '' | default('d') }}|{{ '' | default('d', true) }}|{{ none | d('e') }}|{{ x | length }}|{{ 'häh' | length }}|{{ {'a': 1} | length }}
{% for i in range(3) %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}|{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}|{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }};{% endfor %}|{% for k, v in {'x': 1}.items() %}{{ k }}={{ v }}{% endfor %}|{% for c in 'añb' %}{{ c }}.{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}|{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}|{% if true %}{% set y = 3 %}{% endif %}{{ y }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}|{% set t %}block {{ 1 }}{% endset %}{{ t }}|{% set u | upper %}shout{% endset %}{{ u }}|{% filter upper %}low{% endfilter %}|{% raw %}{{ raw }}{% endraw %}
{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}|{{ f(1, c=9) }}|{{ f('x', 'y', 'z') }}|{% macro deep(n) %}{{ n }}{% if n > 0 %}{{ deep(n - 1) }}{% endif %}{% endmacro %}{{ deep(4) }}
a  {%- if true -%}  b  {%- endif %}  c|  {{- 1 -}}  |{%+ if true %} d{% endif %}|{#- gone -#} e
{{ '\x41\u00e9\U0001F600\q' }}|{{ 'a\
b' }}|{{ "tab\there" }}
{{ '{} of {}'.format(1, 'two') }}|{{ '{1}{0}{x}'.format(1, 2, x=3) }}|{{ '{{}}'.format() }}
{% for x in [1, 2, 3, 4, 5] if x is odd %}{{ loop.index }}:{{ x }}{% if not loop.last %},{% endif %}{% endfor %}|{% for x in [] %}{% else %}empty{% endfor %}|{% for x in [1, 2, 3] %}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}|{% for i in range(4) %}{{ loop.cycle('a', 'b') }}{% endfor %}
""".strip("\n").replace("\\\nb' }}", "\\\x00b' }}").split("\n")

# What Jinja refuses, each with its own words; here one clear Error.
BROKEN = ["{{ x.y.z }}", "{{ 1 + 'a' }}", "{{ x() }}", "{% if %}{% endif %}", "{% for %}{% endfor %}", "{{ 1 ", "{% if true %}", "{{ 'open }}",
          "{{ [1, 2 }}", "{% endfor %}", "{{ 1 // 0 }}", "{{ raise_exception('no') }}", "{{ 1 | nonsense }}", "{{ 1 is nonsense }}",
          "{% set a.b = 1 %}", "{{ {}.append(1) }}", "{% extends 'x' %}", "{{ 'a' < 1 }}", "{{ (1 }}", "{# open"]


def case(name, template, messages, generation, specials):
    out = {"name": name, "template": template, "messages": [{"role": r, "content": c} for r, c in messages],
           "generation": generation, "specials": specials}
    try:
        out["text"] = environment().from_string(template).render(
            messages=out["messages"], tools=None, documents=None, add_generation_prompt=generation, **specials)
    except Exception as error:  # whatever Jinja or Python say: that it is refused is what counts
        out["error"] = f"{type(error).__name__}: {error}"
    return out


def main():
    specials = {"bos_token": "<s>", "eos_token": "</s>"}
    styles = dict(STYLES)
    target = pathlib.Path(__file__).parent / "chat-templates" / "cases.json"
    if len(sys.argv) > 1:
        styles = {path.name: path.read_text(encoding="utf8") for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja"))}
        target = pathlib.Path("/tmp/chat_cases.json")
    cases = [case(f"{name} {i} {'open' if generation else 'closed'}", template, messages, generation, specials)
             for name, template in styles.items() for i, messages in enumerate(CONVERSATIONS) for generation in (True, False)]
    if len(sys.argv) <= 1:
        cases += [case(f"expressions {i}", line.replace("\x00", "\n"), [], False, specials) for i, line in enumerate(EXPRESSIONS)]
        cases += [case(f"broken {i}", text, [], False, specials) for i, text in enumerate(BROKEN)]
    target.write_text(json.dumps({"now": NOW, "cases": cases}, ensure_ascii=False, indent=1) + "\n", encoding="utf8")
    print(f"{len(cases)} cases, {sum('error' in each for each in cases)} refused")


if __name__ == "__main__":
    main()
